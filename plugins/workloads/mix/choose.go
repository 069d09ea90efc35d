package main

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
)

// origin says where the values of a column come from.
type origin uint8

const (
	// invented: made at random.
	invented origin = iota
	// fromRow: taken from a row of the sample, the same one for all columns of an operation.
	fromRow
	// fresh: values that no row has.
	fresh
)

// filled is a column that an INSERT names or an UPDATE sets.
type filled struct {
	values
	from origin
	// free: rows of other tables that go together to a new row have its value, if they have the column.
	free bool
}

// chooser decides which columns are written, and with which values.
type chooser struct {
	table *sdk.Table
	p     *params
	// told: the adapter tells what binds columns.
	told bool
	// sets are the columns that no two rows have alike, the key's first.
	sets []sdk.Constraint
}

func newChooser(t *sdk.Table, p *params) *chooser {
	ch := &chooser{table: t, p: p, told: len(t.Constraints) > 0}
	known := func(columns []string) bool {
		for _, s := range ch.sets {
			if strings.Join(s.Columns, "\x00") == strings.Join(columns, "\x00") {
				return true
			}
		}
		return false
	}
	for _, c := range t.Constraints {
		if c.Kind == sdk.Unique || c.Kind == sdk.Exclusion {
			ch.sets = append(ch.sets, c)
		}
	}
	if len(t.Key) > 0 && !known(t.Key) {
		ch.sets = append(ch.sets, sdk.Constraint{Kind: sdk.Unique, Columns: t.Key})
	}
	for _, c := range t.Columns {
		// What the database computes is unique with what it is computed from.
		if one := []string{c.Name}; c.Unique && !known(one) && (!c.Generated || !ch.told) {
			ch.sets = append(ch.sets, sdk.Constraint{Kind: sdk.Unique, Columns: one})
		}
	}
	// Those of fewer columns leave less to choose from.
	for i := range ch.sets {
		for j := i; j > 0 && len(ch.sets[j].Columns) < len(ch.sets[j-1].Columns); j-- {
			ch.sets[j], ch.sets[j-1] = ch.sets[j-1], ch.sets[j]
		}
	}
	return ch
}

func has(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// binding is what decides the values of a column, the strictest first; nil where the column is free.
func (ch *chooser) binding(name string) *sdk.Constraint {
	var best *sdk.Constraint
	for i := range ch.table.Constraints {
		c := &ch.table.Constraints[i]
		if !ties(c.Kind) || !has(c.Columns, name) || c.Kind == sdk.Exclusion && has(c.Equal, name) {
			continue
		}
		if best == nil || strictness(c.Kind) > strictness(best.Kind) {
			best = c
		}
	}
	return best
}

// ties reports that a constraint decides which values its columns take, and not only that they differ.
func ties(kind string) bool {
	return kind != sdk.Unique && kind != sdk.Referenced && kind != sdk.PointedAt
}

// isPointedAt reports that rows refer to the column and refuse another value in it.
func (ch *chooser) isPointedAt(name string) bool {
	for _, c := range ch.table.Constraints {
		if c.Kind == sdk.PointedAt && has(c.Columns, name) {
			return true
		}
	}
	return false
}

// strictness orders constraints by how little a value of one's own is likely to pass.
func strictness(kind string) int {
	switch kind {
	case sdk.Check, sdk.Domain:
		return 1
	case sdk.Trigger:
		return 2
	case sdk.Partition:
		return 3
	case sdk.Exclusion:
		return 4
	}
	return 5
}

// isUnique reports that an index keeps the column, alone or with others, unique.
func (ch *chooser) isUnique(name string) bool {
	for _, s := range ch.sets {
		if has(s.Columns, name) {
			return true
		}
	}
	return false
}

// makesItself reports that the database gives the column another value in each row when it is left out.
func (ch *chooser) makesItself(c *sdk.Column) bool {
	return c.Fresh || !ch.told && (c.HasDefault || c.Generated)
}

// insertion is the choice of an INSERT's columns while it is made.
type insertion struct {
	*chooser
	byHand   bool
	included map[string]bool
	carriers map[string]bool
	// free is the set whose values come from rows of other tables that go together to a new one.
	free *sdk.Constraint
}

// insertColumns chooses what an INSERT names: what the database does not fill itself, what belongs to that, and columns
// that make each row another one. why is the reason when it cannot be, and cure what helps besides leaving INSERT out.
// free is a set of columns whose values rows of other tables have, in combinations that are not in the table yet.
func (ch *chooser) insertColumns() (list []filled, free *sdk.Constraint, why, cure string) {
	in := &insertion{
		chooser:  ch,
		byHand:   len(ch.p.insertColumns) > 0,
		included: map[string]bool{},
		carriers: map[string]bool{},
	}
	if why, cure = in.include(); why != "" {
		return nil, nil, why, cure
	}
	if why, cure = in.avoidDeleted(); why != "" {
		return nil, nil, why, cure
	}
	in.complete()
	for i := range ch.sets {
		if why, cure = in.carry(&ch.sets[i]); why != "" {
			return nil, nil, why, cure
		}
	}
	for _, c := range ch.table.Columns {
		if !in.included[c.Name] {
			continue
		}
		f, why, cure := in.fill(c)
		if why != "" {
			return nil, nil, why, cure
		}
		if f != nil {
			f.free = in.free != nil && has(in.free.Columns, c.Name)
			list = append(list, *f)
		}
	}
	return list, in.free, "", ""
}

// include takes the columns that were asked for, or those that the database does not fill.
func (in *insertion) include() (why, cure string) {
	if !in.byHand {
		for _, c := range in.table.Columns {
			in.included[c.Name] = !c.Generated && !c.HasDefault
		}
		return "", ""
	}
	for _, name := range in.p.insertColumns {
		c := in.table.Column(name)
		switch {
		case c == nil:
			return "there is no column " + quote(name) + ", which workload.params.insert_columns names",
				"Its columns are " + in.names() + "."
		case c.Generated:
			return "the database alone fills the column " + quote(name) + ", which workload.params.insert_columns names",
				"Leave it out there."
		}
		in.included[name] = true
	}
	for _, c := range in.table.Columns {
		if !in.included[c.Name] && !c.Nullable && !c.HasDefault && !c.Generated {
			return "the column " + quote(
					c.Name,
				) + " is NOT NULL, has no default, and is not among workload.params.insert_columns",
				"Add " + quote(
					c.Name,
				) + " there."
		}
	}
	return "", ""
}

// hasAny reports that two lists have a name in common.
func hasAny(list, names []string) bool {
	for _, name := range names {
		if has(list, name) {
			return true
		}
	}
	return false
}

func (ch *chooser) names() string {
	var names []string
	for _, c := range ch.table.Columns[:min(len(ch.table.Columns), 40)] {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// avoidDeleted leaves out references to rows of the same table, where the run deletes such rows.
func (in *insertion) avoidDeleted() (why, cure string) {
	for _, c := range in.table.Constraints {
		if c.Kind != sdk.ForeignKey || !c.Self || in.p.weights[remove] == 0 {
			continue
		}
		left := false
		for _, name := range c.Columns {
			if column := in.table.Column(name); !in.included[name] || column.Nullable && !in.byHand {
				in.included[name], left = false, true
			}
		}
		if !left {
			return "the foreign key " + quote(c.Name) + " on (" + strings.Join(c.Columns, ", ") +
					") refers to rows of the table itself, which the run's DELETEs take away",
				"Set workload.params.weights.DELETE to 0."
		}
	}
	return "", ""
}

// complete adds columns with defaults that a constraint ties to columns which are named: their values come from the
// same row.
func (in *insertion) complete() {
	if in.byHand {
		return
	}
	for again := true; again; {
		again = false
		for _, c := range in.table.Constraints {
			if !ties(c.Kind) || c.Kind == sdk.Trigger || !in.any(c.Columns) {
				continue
			}
			for _, name := range c.Columns {
				if column := in.table.Column(name); column != nil && !in.included[name] && column.HasDefault && !column.Generated &&
					!column.Fresh && !in.isUnique(name) && !in.table.IsKey(name) {
					in.included[name], again = true, true
				}
			}
		}
	}
}

func (in *insertion) any(columns []string) bool {
	for _, name := range columns {
		if in.included[name] {
			return true
		}
	}
	return false
}

// carry sees to it that each row has another value in one of the columns of a set.
func (in *insertion) carry(set *sdk.Constraint) (why, cure string) {
	columns := set.Columns
	if set.Kind == sdk.Exclusion {
		columns = set.Equal
	}
	best, rank := "", 0
	for _, name := range columns {
		c := in.table.Column(name)
		switch {
		case c == nil:
		case in.carriers[name] || !in.included[name] && in.makesItself(c):
			return "", ""
		case in.included[name] || !in.byHand && c.HasDefault && !c.Generated:
			if r := in.carrierRank(c); r > rank {
				best, rank = name, r
			}
		}
	}
	if in.stillNull(set) {
		return "", ""
	}
	// A column that is free is better than NULL, which is better than values that a check is likely to refuse.
	const free = 100
	if rank < free && in.combine(set) {
		return "", ""
	}
	if rank < free && in.leaveNull(set) {
		return "", ""
	}
	if best != "" {
		in.included[best], in.carriers[best] = true, true
		return "", ""
	}
	if set.Partial {
		return "", "" // whether rows fall under it is found out when the statement is tried
	}
	kind := "unique index"
	if set.Kind == sdk.Exclusion {
		kind = "exclusion constraint"
	}
	why = "each row needs another value in (" + strings.Join(set.Columns, ", ") + ")"
	if set.Name != "" {
		why += ", as the " + kind + " " + quote(set.Name) + " has it"
	}
	why += ", and new ones cannot be made: " + strings.Join(in.obstacles(set.Columns), ", ")
	if set.LeftKnown && set.Left < fewKeys {
		return why + ", and of the rows of such tables " + strconv.FormatInt(set.Left, 10) +
			" combinations are left that it does not have", "Insert more rows into the tables that they refer to."
	}
	if knot, cure := in.knot(set); knot != "" {
		return why + "; " + knot, cure
	}
	return why, ""
}

// combine takes the values of a set from rows of other tables, in combinations that the table does not have.
func (in *insertion) combine(set *sdk.Constraint) bool {
	if !set.LeftKnown || set.Left < fewKeys || in.free != nil {
		return false
	}
	for _, name := range set.Columns {
		if in.byHand && !in.included[name] {
			return false
		}
	}
	// A foreign key that has a part of the columns takes the rest from another row, unless one is NULL.
	loose := in.loose(set)
	for _, name := range loose {
		if in.byHand && in.included[name] || in.carriers[name] {
			return false
		}
	}
	for _, name := range loose {
		in.included[name] = false
	}
	for _, name := range set.Columns {
		in.included[name] = true
	}
	in.free = set
	return true
}

// loose are the columns beyond a set that a foreign key ties to it and that may be left out and NULL.
func (in *insertion) loose(set *sdk.Constraint) (list []string) {
	for i := range in.table.Constraints {
		c := &in.table.Constraints[i]
		if c.Kind != sdk.ForeignKey || !hasAny(set.Columns, c.Columns) {
			continue
		}
		for _, name := range c.Columns {
			column := in.table.Column(name)
			if !has(set.Columns, name) && column != nil && column.Nullable && !column.HasDefault && !column.Generated {
				list = append(list, name)
			}
		}
	}
	return list
}

// knot says which foreign keys keep the columns of a set from being combined: one that has a column beyond them as
// well, or two that share a column.
func (in *insertion) knot(set *sdk.Constraint) (why, cure string) {
	const byHand = "Write the INSERT yourself, with the workload sql."
	var inside []*sdk.Constraint
	for i := range in.table.Constraints {
		c := &in.table.Constraints[i]
		if c.Kind != sdk.ForeignKey || !hasAny(set.Columns, c.Columns) {
			continue
		}
		inside = append(inside, c)
		for _, name := range c.Columns {
			if !has(set.Columns, name) {
				return "the foreign key " + quote(c.Name) + " ties them to column " + quote(name) +
						", so that a new combination needs a row of " + c.References + " of its own", "Let the column " + quote(name) +
						" be NULL without a default. " + byHand
			}
		}
	}
	for i, c := range inside {
		for _, other := range inside[:i] {
			for _, name := range c.Columns {
				if has(other.Columns, name) {
					return "the foreign keys " + quote(other.Name) + " and " + quote(c.Name) + " share column " + quote(name), byHand
				}
			}
		}
	}
	return "", ""
}

// carrierRank says how well new values can be made in a column: 100 and more where it is free, 0 not at all.
func (in *insertion) carrierRank(c *sdk.Column) int {
	m := newMaker(c, in.table, nil, 0)
	if m.values.maker == makeNothing || m.room >= 0 && m.room < fewKeys && !in.table.IsKey(c.Name) {
		return 0
	}
	rank := map[maker]int{makeUUID: 9, makeInt: 6, makeText: 5, makeBytes: 5, makeTimestamp: 4, makeNumeric: 4,
		makeJSON: 3,
		makeInet: 3, makeFloat: 3, makeDate: 2, makeInterval: 2}[m.values.maker]
	if m.values.maker == makeInt && intMax(*c) > 1<<32 {
		rank = 8
	}
	if c.HasDefault && !in.included[c.Name] {
		rank = max(1, rank-2)
	}
	switch b := in.binding(c.Name); {
	case rank == 0:
		return 0
	case b == nil:
		return 100 + rank
	case b.Kind == sdk.Check || b.Kind == sdk.Domain || b.Kind == sdk.Trigger || b.Kind == sdk.Partition:
		return 10*(5-strictness(b.Kind)) + rank
	}
	return 0
}

// stillNull: a column of the set is left out and NULL, and NULLs never collide.
func (in *insertion) stillNull(set *sdk.Constraint) bool {
	for _, name := range set.Columns {
		if c := in.table.Column(name); c != nil && !set.NullsEqual && !in.included[name] && c.Nullable && !c.HasDefault &&
			!c.Generated {
			return true
		}
	}
	return false
}

// leaveNull leaves out a column of the set whose NULLs do not collide.
func (in *insertion) leaveNull(set *sdk.Constraint) bool {
	if in.byHand || set.NullsEqual {
		return false
	}
	for _, name := range set.Columns {
		if c := in.table.Column(name); c != nil && c.Nullable && !c.HasDefault && !c.Generated &&
			!in.carriers[name] {
			in.included[name] = false
			return true
		}
	}
	return false
}

// obstacles say of columns why no new values are made for them.
func (in *insertion) obstacles(columns []string) []string {
	var list []string
	for _, name := range columns {
		c := in.table.Column(name)
		if c == nil {
			continue
		}
		b := in.binding(name)
		switch {
		case b != nil && b.Kind == sdk.ForeignKey:
			list = append(list, "column "+quote(name)+" refers to the table "+b.References)
		case b != nil && b.Kind == sdk.Exclusion:
			list = append(list, "column "+quote(name)+" is part of the exclusion")
		case !in.included[name] && c.Generated:
			list = append(list, "the database computes column "+quote(name))
		default:
			list = append(list, "column "+quote(name)+" is "+c.DBType)
		}
	}
	return list
}

// fill says where the values of a column come from; nil leaves it out.
func (in *insertion) fill(c sdk.Column) (f *filled, why, cure string) {
	v := newValues(c, in.p)
	b := in.binding(c.Name)
	leave := c.Nullable && !in.byHand
	switch {
	case in.carriers[c.Name]:
		return &filled{values: v, from: fresh}, "", ""
	case b == nil && v.maker != makeNothing:
		return &filled{values: v}, "", ""
	case in.table.Rows > 0, in.refersToKnown(c.Name), in.free != nil && has(in.free.Columns, c.Name):
		return &filled{values: v, from: fromRow}, "", ""
	case leave:
		return nil, "", ""
	case b != nil && b.Kind == sdk.ForeignKey && b.ParentsKnown:
		return nil, "the column " + quote(c.Name) + " refers to the table " + b.References + ", which has no rows",
			"Insert rows into " + b.References + " first."
	case b != nil && b.Kind == sdk.ForeignKey:
		return nil, "the column " + quote(c.Name) + " refers to the table " + b.References +
			", its values can only be taken from existing rows, and there are none", "Insert a first row by hand."
	case v.maker == makeNothing:
		return nil, "values of type " + c.DBType + " for column " + quote(c.Name) +
			" can only be taken from existing rows, and there are none", "Insert a first row by hand."
	}
	return &filled{values: v}, "", ""
}

// refersToKnown reports that the rows made for an empty table have the column.
func (in *insertion) refersToKnown(name string) bool {
	for _, c := range in.table.Constraints {
		if c.Kind == sdk.ForeignKey && c.Parents > 0 && has(c.Columns, name) {
			return true
		}
	}
	return false
}

// updateColumns chooses what an UPDATE sets: the columns that were asked for, or a free one, or columns that belong
// together, with the values of another row.
func (ch *chooser) updateColumns() (list []filled, why, cure string) {
	if len(ch.p.updateColumns) > 0 {
		return ch.updateByHand()
	}
	best, rank := values{}, -1
	// Later columns win ties: payload stands last, references and codes first.
	for _, c := range ch.table.Columns {
		if ch.changes(c.Name) && ch.binding(c.Name) == nil {
			if v := newValues(c, ch.p); updateRank(v) >= max(rank, 0) {
				best, rank = v, updateRank(v)
			}
		}
	}
	if rank >= 0 {
		return []filled{{values: best}}, "", ""
	}
	least := 0
	for _, c := range ch.table.Columns {
		strict := 0
		if b := ch.binding(c.Name); b != nil {
			strict = strictness(b.Kind)
		}
		group, ok := ch.together(c.Name)
		if !ok || list != nil && strict >= least {
			continue
		}
		list, least = nil, strict
		for _, name := range group {
			list = append(list, filled{values: newValues(*ch.table.Column(name), ch.p), from: fromRow})
		}
	}
	if list == nil {
		list = ch.freshUpdate()
	}
	if list == nil {
		return nil, "it has no column outside its key whose values can be made, or taken from other rows, without " +
			"breaking a constraint" + ch.bindings(), "Name the columns with workload.params.update_columns."
	}
	return list, "", ""
}

// bindings say of the columns outside the key what binds them.
func (ch *chooser) bindings() string {
	var list []string
	for _, c := range ch.table.Columns {
		if ch.table.IsKey(c.Name) || len(list) == mostNamed {
			continue
		}
		what := "unique"
		switch b := ch.binding(c.Name); {
		case c.Generated:
			what = "computed by the database"
		case b != nil:
			if what = strings.ReplaceAll(b.Kind, "_", " "); b.Name != "" {
				what += " " + b.Name
			}
		case ch.isPointedAt(c.Name):
			what = "other rows refer to it"
		case !ch.isUnique(c.Name):
			what = c.DBType
		}
		list = append(list, quote(c.Name)+" ("+what+")")
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

// mostNamed bounds the columns that a refusal names.
const mostNamed = 8

// freshUpdate sets a column that is unique and free to a new value.
func (ch *chooser) freshUpdate() []filled {
	for i := len(ch.table.Columns) - 1; i >= 0; i-- {
		c := ch.table.Columns[i]
		m := newMaker(&c, ch.table, nil, 0)
		if !c.Generated && !ch.table.IsKey(c.Name) && !ch.isPointedAt(c.Name) && ch.binding(c.Name) == nil &&
			m.values.maker != makeNothing &&
			(m.room < 0 || m.room >= fewKeys) {
			return []filled{{values: newValues(c, ch.p), from: fresh}}
		}
	}
	return nil
}

// updateRank prefers text, because value_size applies to it; it is below 0 for what cannot be invented.
func updateRank(v values) int {
	switch v.maker {
	case makeNothing:
		return -1
	case makeText:
		if v.column.MaxLength == 0 {
			return 35
		}
		return 30
	case makeNumeric, makeFloat, makeInt, makeBytes, makeJSON:
		return 20
	}
	return 10
}

// changes reports that a column may have another value without a new one being needed for it.
func (ch *chooser) changes(name string) bool {
	c := ch.table.Column(name)
	return c != nil && !c.Generated && !ch.table.IsKey(name) && !ch.isUnique(name) && !ch.isPointedAt(name)
}

// together are a column and those that constraints tie to it, if all of them may be changed.
func (ch *chooser) together(name string) (group []string, ok bool) {
	group = []string{name}
	for i := 0; i < len(group); i++ {
		if !ch.changes(group[i]) {
			return nil, false
		}
		for _, c := range ch.table.Constraints {
			if !ties(c.Kind) || !has(c.Columns, group[i]) {
				continue
			}
			if c.Kind == sdk.Exclusion || c.Kind == sdk.ForeignKey && c.Self && ch.p.weights[remove] > 0 {
				return nil, false
			}
			for _, other := range c.Columns {
				if c.Kind != sdk.Trigger && !has(group, other) {
					group = append(group, other)
				}
			}
		}
	}
	return group, true
}

func (ch *chooser) updateByHand() (list []filled, why, cure string) {
	for _, name := range ch.p.updateColumns {
		c := ch.table.Column(name)
		switch {
		case c == nil:
			return nil, "there is no column " + quote(name) + ", which workload.params.update_columns names",
				"Its columns are " + ch.names() + "."
		case c.Generated:
			return nil, "the database alone fills the column " + quote(name) + ", which workload.params.update_columns names",
				"Leave it out there."
		case ch.table.IsKey(name):
			return nil, "the column " + quote(name) + ", which workload.params.update_columns names, finds the row",
				"Leave it out there."
		}
		f := filled{values: newValues(*c, ch.p)}
		switch {
		case ch.isUnique(name) && ch.binding(name) == nil && newMaker(c, ch.table, nil, 0).values.maker != makeNothing:
			f.from = fresh
		case ch.binding(name) != nil || f.maker == makeNothing:
			f.from = fromRow
		}
		list = append(list, f)
	}
	if len(list) > maxBinds-len(ch.table.Key) {
		return nil, "workload.params.update_columns names " + strconv.Itoa(len(list)) + " columns, and an operation has " +
			strconv.Itoa(maxBinds) + " values at most", "Name fewer."
	}
	return list, "", ""
}

// deletes says which foreign keys refuse DELETE, "" when none does.
func (ch *chooser) deletes() (why, cure string) {
	var names []string
	for _, c := range ch.table.Constraints {
		if c.Kind == sdk.Referenced {
			names = append(names, quote(c.Name)+" of "+c.References)
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	if more := len(names) - 8; more > 0 {
		names = append(names[:8], strconv.Itoa(more)+" more")
	}
	return "rows of other tables, or of its own, refer to its rows, and refuse that they go: the foreign key " +
		strings.Join(names, ", "), "Delete those rows first, or declare ON DELETE CASCADE or SET NULL."
}
