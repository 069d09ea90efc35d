package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// plan is what the parameters and the table's shape decide. Statements and Open
// derive the same plan from the same documents, so the indexes of batches agree
// with the statement list.
type plan struct {
	table *sdk.Table
	// statement is the index of each kind's statement; meaningful where the weight is not 0.
	statement [numKinds]uint16
	list      []sdk.Statement
	// fill are the columns that INSERT names, change those that UPDATE sets.
	fill, change []filled
	// free is the set of columns that rows of other tables fill, in combinations that the table does not have; nil for
	// none.
	free *sdk.Constraint
}

func makePlan(p *params, tables []sdk.Table) (*plan, error) {
	if len(tables) == 0 {
		return nil, errors.New("mix needs a table")
	}
	pl := &plan{table: &tables[0]}
	if !p.weighted && !pl.table.Own {
		p.weights[insert], p.weights[update], p.weights[remove] = 0, 0, 0
	}
	var key []sdk.Bind
	for _, name := range pl.table.Key {
		c := pl.table.Column(name)
		if c == nil {
			return nil, errors.New("the key column " + quote(name) + " is not among the columns of " + pl.name())
		}
		key = append(key, sdk.Bind{Name: name, Type: c.Type, Column: name})
	}
	var columns []string
	for _, c := range pl.table.Columns {
		columns = append(columns, c.Name)
	}
	for kind, weight := range p.weights {
		if weight == 0 {
			continue
		}
		if kind != insert {
			if len(key) == 0 {
				return nil, &sdk.RefusalError{
					Field: "workload.params.weights." + kinds[kind],
					Message: pl.name() + " cannot take " +
						kinds[kind] + ": it has no primary key and no unique index over columns that are NOT NULL, and views have none",
					Hint: "Name the columns that find a row, target.params.key: [" + pl.likelyKey() +
						"]; or set workload.params.weights.INSERT alone.",
				}
			}
			if pl.table.Rows == 0 && !pl.table.HasRange {
				return nil, pl.planError(kind, "it is empty; load rows first (target.prepare)")
			}
		}
		s := sdk.Statement{Kind: kinds[kind], Table: pl.table.Name, Binds: key, Param: "weights." + kinds[kind],
			Hint: "set workload.params.weights." + kinds[kind] + " to 0", NoRowsHint: cure}
		switch kind {
		case lookup:
			s.ID, s.Columns = "point_lookup", columns
		case scan:
			s.ID, s.Columns, s.Limit = "range_scan", columns, int(p.scanLength)
		case insert:
			s.ID, s.Writes = "insert", true
			var err error
			if s.Note, err = pl.planInsert(p); err != nil {
				return nil, err
			}
			s.Binds = binds(pl.fill)
			s.Hint = "choose the columns with workload.params.insert_columns, or " + s.Hint
		case update:
			s.ID, s.Writes = "update", true
			var why, cure string
			if pl.change, why, cure = newChooser(pl.table, p).updateColumns(); why != "" {
				return nil, pl.refusal(update, why, cure)
			}
			s.Binds = append(binds(pl.change), key...)
			s.Hint = "choose the columns with workload.params.update_columns, or " + s.Hint
		case remove:
			s.ID, s.Writes = "delete", true
			if why, cure := newChooser(pl.table, p).deletes(); why != "" {
				return nil, pl.refusal(remove, why, cure)
			}
		}
		if err := pl.fits(p); err != nil {
			return nil, err
		}
		pl.statement[kind] = uint16(len(pl.list))
		pl.list = append(pl.list, s)
	}
	return pl, nil
}

// binds are the parameters of columns.
func binds(columns []filled) []sdk.Bind {
	var list []sdk.Bind
	for _, f := range columns {
		list = append(list, sdk.Bind{Name: f.column.Name, Type: f.column.Type, Column: f.column.Name})
	}
	return list
}

// planInsert chooses the columns to fill. None is left to fill where the database fills every column itself.
func (pl *plan) planInsert(p *params) (note string, err error) {
	fill, free, why, cure := newChooser(pl.table, p).insertColumns()
	if why != "" {
		return "", pl.refusal(insert, why, cure)
	}
	pl.fill, pl.free = fill, free
	if note, err = pl.narrow(); err != nil {
		return "", err
	}
	if free != nil {
		if note != "" {
			note += " "
		}
		note += "INSERT has at least " + strconv.FormatInt(free.Left, 10) + " combinations of (" +
			strings.Join(free.Columns, ", ") + ") left that " + pl.name() + " does not have; each is inserted once. The run " +
			"workers share out seven eighths of them; the others are kept for run workers that replace one."
	}
	// A handful of values is used up before a run has begun.
	for _, f := range pl.fill {
		if f.from != fresh {
			continue
		}
		if m := newMaker(&f.column, pl.table, nil, 0); m.values.maker == makeNothing {
			return "", pl.planError(insert, "new unique values of type "+f.column.DBType+" for column "+quote(f.column.Name)+
				" cannot be made")
		} else if m.room >= 0 && m.room < fewKeys {
			return "", pl.planError(insert, pl.keyRangeExhausted(f.column))
		}
	}
	return note, nil
}

// maxOperation leaves room in a batch for an operation and what was written before it.
const maxOperation = 6 << 20

// fits refuses values so large that one operation does not fit into a batch.
func (pl *plan) fits(p *params) error {
	for _, list := range [][]filled{pl.fill, pl.change} {
		size := int64(0)
		for _, f := range list {
			switch f.maker {
			case makeText, makeBytes, makeJSON:
				if f.from == invented {
					size += f.maxSize
				}
			}
		}
		if size > maxOperation {
			return &sdk.RefusalError{Field: "workload.params.value_size", Message: "value_size.max is " +
				strconv.FormatInt(p.maxSize, 10) + ", and the columns of one operation on " + pl.name() + " would have " +
				strconv.FormatInt(size>>20, 10) + " MB together, more than the 6 MB that one has at most",
				Hint: "Lower workload.params.value_size.max."}
		}
	}
	return nil
}

// fewKeys are too few for a run with inserts.
const fewKeys = 100

// maxBinds is how many values an operation has at most.
const maxBinds = 255

// narrow leaves optional columns out of an INSERT with more values than an operation
// has, the last ones first, and says so.
func (pl *plan) narrow() (note string, err error) {
	var left []string
	for i := len(pl.fill) - 1; i >= 0 && len(pl.fill) > maxBinds; i-- {
		if c := pl.fill[i].column; c.Nullable && !pl.table.IsKey(c.Name) {
			left = append(left, c.Name)
			pl.fill = append(pl.fill[:i], pl.fill[i+1:]...)
		}
	}
	if n := len(pl.fill); n > maxBinds {
		return "", pl.planError(insert, "it has "+strconv.Itoa(n)+" columns that are NOT NULL and have no default, and an "+
			"operation has "+strconv.Itoa(maxBinds)+" values at most. Give some of them a default")
	}
	if n := len(left); n > 0 {
		note = "INSERT leaves " + strconv.Itoa(n) + " columns of " + pl.name() + " NULL, from " + quote(left[n-1]) + " to " +
			quote(
				left[0],
			) + ": an operation has " + strconv.Itoa(maxBinds) + " values at most. workload.params.insert_columns " +
			"chooses others."
	}
	return note, nil
}

// keyRangeExhausted says that a column is at the end of what its type holds.
func (pl *plan) keyRangeExhausted(c sdk.Column) string {
	text := "its column " + quote(c.Name)
	if pl.table.IsKey(c.Name) {
		text = "its key column " + quote(c.Name)
	}
	if c.Type != sdk.I64 {
		return text + " is " + c.DBType + ", which has too few values beyond those that are there"
	}
	text += " is " + c.DBType + ", which ends at " + strconv.FormatInt(intMax(c), 10)
	switch {
	case pl.table.HasRange && pl.table.IsKey(c.Name):
		text += ", and the largest key is " + strconv.FormatInt(pl.table.KeyMax, 10)
	case c.HasTop:
		text += ", and its largest value is " + strconv.FormatInt(c.Top, 10)
	}
	return text
}

// likelyKey is the column that a user most likely means by a key.
func (pl *plan) likelyKey() string {
	for _, c := range pl.table.Columns {
		if name := strings.ToLower(c.Name); name == "id" || strings.HasSuffix(name, "_id") {
			return c.Name
		}
	}
	if len(pl.table.Columns) > 0 {
		return pl.table.Columns[0].Name
	}
	return "column"
}

func (pl *plan) name() string {
	if pl.table.PhysicalName != "" {
		return "table " + pl.table.PhysicalName
	}
	return "table " + pl.table.Name
}

// planError refuses a kind of operation: it says what is wrong and what to do about it.
func (pl *plan) planError(kind int, why string) error { return pl.refusal(kind, why, "") }

// refusal is planError with a cure besides leaving the kind out.
func (pl *plan) refusal(kind int, why, cure string) error {
	hint := "Set workload.params.weights." + kinds[kind] + " to 0, or choose another table."
	if cure != "" {
		hint = cure + " Or set workload.params.weights." + kinds[kind] + " to 0."
	}
	return &sdk.RefusalError{Field: "workload.params.weights." + kinds[kind],
		Message: pl.name() + " cannot take " + kinds[kind] + ": " + why, Hint: hint}
}

func quote(s string) string { return `"` + s + `"` }

// Statements returns the statements for these parameters on this table.
func (mix) Statements(doc *jsondoc.Value, tables []sdk.Table) ([]sdk.Statement, error) {
	p, err := readParams(doc)
	if err != nil {
		return nil, err
	}
	pl, err := makePlan(&p, tables)
	if err != nil {
		return nil, err
	}
	return pl.list, nil
}

// cure is what helps against operations that find no row.
const cure = "the rows that it asks for are not in the table, or not any more: beside DELETEs give weights.INSERT no " +
	"less than weights.DELETE, or the table more rows; target.prepare.if_exists: recreate loads a table of Loadstone's " +
	"own anew, and target.params.key_sample says how many keys are read before the run"
