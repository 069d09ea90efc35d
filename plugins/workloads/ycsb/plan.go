package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// plan is what the parameters and the table decide. Statements and Open make the
// same one, so the indexes of batches agree with the statement list.
type plan struct {
	// keyPart is the key's column among those of the keys that the host holds.
	keyPart int
	table   *sdk.Table
	fields  []string
	list    []sdk.Statement
	// at is the first statement of each operation. An operation on one field has
	// a statement for each field, in their order; modify's update is modifyWrite.
	at          [numOps]uint16
	modifyWrite uint16
}

func makePlan(o *options, tables []sdk.Table) (*plan, error) {
	if len(tables) == 0 {
		return nil, errors.New("ycsb needs a table")
	}
	p := &plan{table: &tables[0]}
	t := p.table
	if len(t.Key) != 1 || t.Column(t.Key[0]) == nil || t.Column(t.Key[0]).Type != sdk.Text {
		return nil, errors.New(p.name() + " has no primary key of one text column, as YCSB's usertable has (" + keyColumn +
			" varchar(255))")
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		switch {
		case t.IsKey(c.Name):
		case c.Type == sdk.Text && isField(c.Name):
			if n := int64(c.MaxLength); n > 0 && n < o.fieldLength {
				return nil, errors.New("the column " + c.Name + " of " + p.name() + " holds " + strconv.Itoa(c.MaxLength) +
					" characters: set field_length to that, or less")
			}
			p.fields = append(p.fields, c.Name)
		case o.mix[opInsert] > 0 && !c.Nullable && !c.HasDefault && !c.Generated:
			return nil, errors.New(p.name() + " cannot take inserts: its column " + c.Name +
				" must have a value and is none of YCSB's")
		}
	}
	if len(p.fields) == 0 {
		return nil, errors.New(p.name() + " has no text columns field0, field1 …, as YCSB's usertable has")
	}
	if t.Rows == 0 && o.mix[opInsert] < 1 {
		return nil, errors.New(p.name() + " is empty: load records first (target.prepare)")
	}
	// An estimate of the rows may be a little low.
	if o.records > t.Rows+t.Rows/10 {
		return nil, errors.New("record_count is " + strconv.FormatInt(o.records, 10) + ", and " + p.name() + " has " +
			strconv.FormatInt(t.Rows, 10) + " rows")
	}
	p.statements(o)
	return p, nil
}

// isField reports whether a column is named field and a number, in any case of letters.
func isField(column string) bool {
	if len(column) <= len(fieldPrefix) || !strings.EqualFold(column[:len(fieldPrefix)], fieldPrefix) {
		return false
	}
	_, err := strconv.ParseUint(column[len(fieldPrefix):], 10, 32)
	return err == nil
}

func (p *plan) name() string {
	if p.table.PhysicalName != "" {
		return "the table " + p.table.PhysicalName
	}
	return "the table " + p.table.Name
}

func (p *plan) statements(o *options) {
	key := sdk.Bind{Name: p.table.Key[0], Type: sdk.Text, Column: p.table.Key[0]}
	all := append([]string{key.Name}, p.fields...)
	param := "workload"
	add := func(s sdk.Statement) uint16 {
		s.Table, s.Param, s.NoRowsHint = p.table.Name, param, cure
		p.list = append(p.list, s)
		return uint16(len(p.list) - 1)
	}
	// read declares a statement that fetches all fields, or one for each.
	read := func(s sdk.Statement) uint16 {
		if o.readAll {
			s.Columns = all
			return add(s)
		}
		first, id := uint16(len(p.list)), s.ID
		for _, f := range p.fields {
			s.ID, s.Columns = id+"_"+f, []string{f}
			add(s)
		}
		return first
	}
	write := func(id string) uint16 {
		s := sdk.Statement{ID: id, Kind: sdk.Update, Writes: true}
		if o.writeAll {
			for _, f := range p.fields {
				s.Binds = append(s.Binds, sdk.Bind{Name: f, Type: sdk.Text, Column: f})
			}
			s.Binds = append(s.Binds, key)
			return add(s)
		}
		first := uint16(len(p.list))
		for _, f := range p.fields {
			s.ID, s.Binds = id+"_"+f, []sdk.Bind{{Name: f, Type: sdk.Text, Column: f}, key}
			add(s)
		}
		return first
	}
	for op, share := range o.mix {
		if share == 0 {
			continue
		}
		if o.custom {
			param = "proportions." + operations[op]
		}
		switch op {
		case opRead:
			p.at[op] = read(sdk.Statement{ID: "read", Kind: sdk.PointLookup, Binds: []sdk.Bind{key}})
		case opUpdate:
			p.at[op] = write("update")
		case opInsert:
			s := sdk.Statement{ID: "insert", Kind: sdk.Insert, Writes: true, Binds: []sdk.Bind{key}}
			for _, f := range p.fields {
				s.Binds = append(s.Binds, sdk.Bind{Name: f, Type: sdk.Text, Column: f})
			}
			p.at[op] = add(s)
		case opScan:
			p.at[op] = read(sdk.Statement{ID: "scan", Kind: sdk.RangeScan,
				Binds: []sdk.Bind{key, {Name: "records", Type: sdk.I64}}})
		case opModify:
			p.at[op] = read(sdk.Statement{ID: "modify_read", Transaction: "read_modify_write", Kind: sdk.PointLookup,
				Binds: []sdk.Bind{key}})
			p.modifyWrite = write("modify_update")
		}
	}
}

// Statements returns the statements for these parameters on this table.
func (ycsb) Statements(doc *jsondoc.Value, tables []sdk.Table) ([]sdk.Statement, error) {
	o, err := readOptions(doc)
	if err != nil {
		return nil, err
	}
	p, err := makePlan(&o, tables)
	if err != nil {
		return nil, err
	}
	return p.list, nil
}

// cure is what helps against reads that find no record.
const cure = "records of these numbers are not in the table: workload.params.record_count is how many were loaded, " +
	"from number 0 on, and target.params.key_sample how many keys are read of a table on which runs have inserted; " +
	"target.prepare.if_exists: recreate loads it anew"
