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
	// fill are the columns that INSERT names, change is the column that UPDATE sets.
	fill   []values
	change values
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
				return nil, errors.New(pl.name() + " cannot take " + kinds[kind] +
					": it has no primary key and no unique index over columns that are NOT NULL, and views have none. Name the " +
					"columns that find a row, " +
					"target.params.key: [" + pl.likelyKey() + "]; or set workload.params.weights.INSERT alone")
			}
			if pl.table.Rows == 0 && !pl.table.HasRange {
				return nil, pl.planError(kind, "it is empty; load rows first (target.prepare)")
			}
		}
		s := sdk.Statement{Kind: kinds[kind], Table: pl.table.Name, Binds: key, Param: "weights." + kinds[kind],
			Cure: cure}
		switch kind {
		case lookup:
			s.ID, s.Columns = "point_lookup", columns
		case scan:
			s.ID, s.Columns, s.Limit = "range_scan", columns, int(p.scanLength)
		case insert:
			s.ID, s.Writes = "insert", true
			if err := pl.planInsert(p); err != nil {
				return nil, err
			}
			s.Binds = nil
			for _, v := range pl.fill {
				s.Binds = append(s.Binds, sdk.Bind{Name: v.column.Name, Type: v.column.Type, Column: v.column.Name})
			}
		case update:
			s.ID, s.Writes = "update", true
			if err := pl.planUpdate(p); err != nil {
				return nil, err
			}
			c := pl.change.column
			s.Binds = append([]sdk.Bind{{Name: c.Name, Type: c.Type, Column: c.Name}}, key...)
		case remove:
			s.ID, s.Writes = "delete", true
		}
		pl.statement[kind] = uint16(len(pl.list))
		pl.list = append(pl.list, s)
	}
	return pl, nil
}

// planInsert chooses the columns to fill: all that the database does not fill
// itself, except optional ones whose values cannot be invented.
func (pl *plan) planInsert(p *params) error {
	for _, c := range pl.table.Columns {
		if c.Generated || c.HasDefault {
			continue
		}
		v := newValues(c, p)
		if v.maker == makeNothing {
			if c.Nullable {
				continue
			}
			if pl.table.Rows == 0 {
				return pl.planError(insert, "values of type "+c.DBType+" for column "+quote(c.Name)+
					" can only be taken from existing rows, and there are none")
			}
			if c.Unique || len(pl.table.Key) == 1 && pl.table.IsKey(c.Name) {
				return pl.planError(insert, "new unique values of type "+c.DBType+" for column "+quote(c.Name)+" cannot be made")
			}
		}
		pl.fill = append(pl.fill, v)
	}
	if len(pl.fill) == 0 {
		return pl.planError(insert, "the database fills every column itself")
	}
	if err := pl.narrow(); err != nil {
		return err
	}
	// A handful of keys is used up before a run has begun.
	if len(pl.table.Key) == 1 && pl.table.HasRange {
		if c := pl.table.Column(pl.table.Key[0]); c != nil && !c.HasDefault && !c.Generated && c.Type == sdk.I64 &&
			intMax(*c)-pl.table.KeyMax < fewKeys {
			return pl.planError(insert, pl.keyRangeExhausted(*c))
		}
	}
	return nil
}

// fewKeys are too few for a run with inserts.
const fewKeys = 100

// maxBinds is how many values an operation has at most.
const maxBinds = 255

// narrow leaves optional columns out of an INSERT with more values than an operation
// has, the last ones first.
func (pl *plan) narrow() error {
	for i := len(pl.fill) - 1; i >= 0 && len(pl.fill) > maxBinds; i-- {
		if c := pl.fill[i].column; c.Nullable && !pl.table.IsKey(c.Name) {
			pl.fill = append(pl.fill[:i], pl.fill[i+1:]...)
		}
	}
	if n := len(pl.fill); n > maxBinds {
		return pl.planError(insert, "it has "+strconv.Itoa(n)+" columns that are NOT NULL and have no default, and an "+
			"operation has "+strconv.Itoa(maxBinds)+" values at most. Give some of them a default")
	}
	return nil
}

// keyRangeExhausted says that a key is at the end of what its type holds.
func (pl *plan) keyRangeExhausted(c sdk.Column) string {
	text := "its key column " + quote(c.Name) + " is " + c.DBType + ", which ends at " + strconv.FormatInt(intMax(c), 10)
	if pl.table.HasRange {
		text += ", and the largest key is " + strconv.FormatInt(pl.table.KeyMax, 10)
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

// planUpdate chooses the column to set. Text comes first, because value_size
// applies to it; unique columns are never touched.
func (pl *plan) planUpdate(p *params) error {
	best := -1
	rank := func(m maker) int {
		switch m {
		case makeNothing:
			return -1
		case makeText:
			return 3
		case makeNumeric, makeFloat, makeInt, makeBytes, makeJSON:
			return 2
		}
		return 1
	}
	// Later columns win ties: payload stands last, references and codes first.
	for _, c := range pl.table.Columns {
		if c.Generated || c.Unique || pl.table.IsKey(c.Name) {
			continue
		}
		v := newValues(c, p)
		r := 10 * rank(v.maker)
		if v.maker == makeText && c.MaxLength == 0 {
			r += 5
		}
		if r >= best && r >= 0 {
			best, pl.change = r, v
		}
	}
	if best < 0 {
		return pl.planError(update, "it has no column outside its key whose values can be made")
	}
	return nil
}

func (pl *plan) name() string {
	if pl.table.PhysicalName != "" {
		return "table " + pl.table.PhysicalName
	}
	return "table " + pl.table.Name
}

// planError says what is wrong and what to do about it.
func (pl *plan) planError(kind int, why string) error {
	return errors.New(pl.name() + " cannot take " + kinds[kind] + ": " + why + ". Set workload.params.weights." +
		kinds[kind] + " to 0, or choose another table")
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
