// Command tpcb is the workload plugin of pgbench's built-in scripts: the same
// tables, statements and random numbers, so that it and pgbench can work on one
// database. The definition is pgbench's own, as `pgbench -i` and
// `pgbench --show-script=tpcb-like` of Postgres 15 give it.
package main

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

func init() { sdk.ServeWorkload(tpcb{}) }

func main() {}

type tpcb struct{}

// Rows for one unit of scale.
const (
	accountsPerScale = 100_000
	tellersPerScale  = 10
	branchesPerScale = 1
)

// wideScale is the scale from which on account numbers need a bigint, as in pgbench.
const wideScale = 20_000

// The tables in the order in which they are made. The last one always has rows,
// so that a set-up that was killed is recognised.
const (
	historyTable = iota
	tellersTable
	accountsTable
	branchesTable
)

// Manifest describes the plugin.
func (tpcb) Manifest() sdk.Manifest {
	p := params{scale: 1, fillfactor: 100}
	return sdk.Manifest{
		Name: "tpcb", Version: "1.0.0", Title: "TPC-B like (pgbench)", Author: "Loadstone",
		Description: "What pgbench does by default: a bank moves money. One transaction changes an account, a teller and " +
			"a branch, and writes a line of history. On pgbench's own tables.",
		Parameters: parameterSchema,
		Tables:     p.tables(),
	}
}

const parameterSchema = `{
"$schema":"https://json-schema.org/draft/2020-12/schema",
"type":"object","additionalProperties":false,
"properties":{
"scale":{"title":"Scale","description":"Branches, each with 10 tellers and 100 000 accounts (about 15 MB). With fewer branches than connections they wait for each other. Has to match existing tables.",
"type":"integer","minimum":1,"maximum":100000,"default":1},
"script":{"title":"Script","description":"tpcb-like: the whole transaction. simple-update: without tellers and branches. select-only: reads one account.",
"type":"string","enum":["tpcb-like","simple-update","select-only"],"default":"tpcb-like"},
"fillfactor":{"title":"Fill factor","description":"Percent by which new tables are packed.",
"type":"integer","minimum":10,"maximum":100,"default":100}
}}`

type script uint8

const (
	tpcbLike script = iota
	simpleUpdate
	selectOnly
)

var scripts = [...]string{"tpcb-like", "simple-update", "select-only"}

type params struct {
	scale, fillfactor int64
	script            script
}

func readParams(doc *jsondoc.Value) (params, error) {
	p := params{scale: 1, fillfactor: 100}
	if !doc.IsNull() && doc.Kind() != jsondoc.Object {
		return p, errors.New("params must be an object")
	}
	for _, name := range doc.Names() {
		v := doc.Get(name)
		switch name {
		case "scale":
			if err := readInt(name, v, 1, 100_000, &p.scale); err != nil {
				return p, err
			}
		case "fillfactor":
			if err := readInt(name, v, 10, 100, &p.fillfactor); err != nil {
				return p, err
			}
		case "script":
			known := false
			for i, s := range scripts {
				if s == v.Str() {
					p.script, known = script(i), true
				}
			}
			if !known {
				return p, errors.New("script is " + strconv.Quote(v.Str()) + ": one of tpcb-like, simple-update, select-only")
			}
		default:
			return p, errors.New("unknown parameter " + strconv.Quote(name))
		}
	}
	return p, nil
}

func readInt(name string, v *jsondoc.Value, lo, hi int64, to *int64) error {
	n, ok := v.Int()
	if !ok || v.Kind() != jsondoc.Number || n < lo || n > hi {
		return errors.New(name + " must be a whole number from " + strconv.FormatInt(lo, 10) + " to " +
			strconv.FormatInt(hi, 10))
	}
	*to = n
	return nil
}

// rows is how many rows a table begins with.
func (p *params) rows(table int) int64 {
	switch table {
	case tellersTable:
		return tellersPerScale * p.scale
	case accountsTable:
		return accountsPerScale * p.scale
	case branchesTable:
		return branchesPerScale * p.scale
	}
	return 0
}

// tables are pgbench's.
func (p *params) tables() []sdk.LogicalTable {
	number := func(name string, nullable bool, fill *sdk.Fill) sdk.LogicalColumn {
		return sdk.LogicalColumn{Name: name, Type: sdk.I64, Nullable: nullable,
			DBType: map[string]string{dialect: "integer", snowflakeDialect: "NUMBER(10,0)"}, Fill: fill}
	}
	aid := func(nullable bool, fill *sdk.Fill) sdk.LogicalColumn {
		c := number("aid", nullable, fill)
		if p.scale >= wideScale {
			c.DBType[dialect], c.DBType[snowflakeDialect] = "bigint", "NUMBER(19,0)"
		}
		return c
	}
	filler := func(size string, fill *sdk.Fill) sdk.LogicalColumn {
		return sdk.LogicalColumn{Name: "filler", Type: sdk.Text, Nullable: true,
			DBType: map[string]string{dialect: "char(" + size + ")", snowflakeDialect: "VARCHAR(" + size + ")"}, Fill: fill}
	}
	// The rows of Rows, said in a way that a database can make them itself: as pgbench -I g does.
	first := func() *sdk.Fill { return &sdk.Fill{As: sdk.FillNumber, From: 1} }
	branch := func(rows int64) *sdk.Fill { return &sdk.Fill{As: sdk.FillBlock, From: 1, Step: rows} }
	constant := func(values ...string) *sdk.Fill { return &sdk.Fill{As: sdk.FillConstant, Values: values} }
	packed := map[string]string{dialect: "WITH (fillfactor=" + strconv.FormatInt(p.fillfactor, 10) + ")"}
	list := []sdk.LogicalTable{
		historyTable: {Name: "pgbench_history", Empty: true, Varies: true, Columns: []sdk.LogicalColumn{
			number("tid", true, nil), number("bid", true, nil), aid(true, nil), number("delta", true, nil),
			{Name: "mtime", Type: sdk.Timestamp, Nullable: true, DBType: map[string]string{dialect: "timestamp"}},
			filler("22", nil)}},
		tellersTable: {Name: "pgbench_tellers", Key: []string{"tid"}, Options: packed, Columns: []sdk.LogicalColumn{
			number("tid", false, first()), number("bid", true, branch(tellersPerScale)), number("tbalance", true, constant("0")),
			filler("84", constant())}},
		accountsTable: {Name: "pgbench_accounts", Key: []string{"aid"}, Options: packed, Columns: []sdk.LogicalColumn{
			aid(false, first()), number("bid", true, branch(accountsPerScale)), number("abalance", true, constant("0")),
			filler("84", constant(""))}},
		branchesTable: {Name: "pgbench_branches", Key: []string{"bid"}, Options: packed, Columns: []sdk.LogicalColumn{
			number("bid", false, first()), number("bbalance", true, constant("0")), filler("88", constant())}},
	}
	for i := range list {
		list[i].ComputedKeys, list[i].Rows = true, p.rows(i)
		if !list[i].Empty {
			list[i].SizedBy = "scale"
		}
	}
	return list
}

// Tables returns the tables of a scale.
func (tpcb) Tables(doc *jsondoc.Value) ([]sdk.LogicalTable, error) {
	p, err := readParams(doc)
	if err != nil {
		return nil, err
	}
	return p.tables(), nil
}

// Rows writes the rows that pgbench -i writes: every balance is 0.
func (tpcb) Rows(doc *jsondoc.Value, b *sdk.Batch, table int, first int64, count int) error {
	p, err := readParams(doc)
	if err != nil {
		return err
	}
	if table < historyTable || table > branchesTable || first < 0 {
		return errors.New("there is no such table or row")
	}
	end := min(first+int64(count), p.rows(table))
	for i := first; i < end; i++ {
		b.Row()
		b.I64(i + 1)
		switch table {
		case tellersTable:
			b.I64(i/tellersPerScale + 1)
			b.I64(0)
			b.Null()
		case accountsTable:
			b.I64(i/accountsPerScale + 1)
			b.I64(0)
			b.Text("")
		case branchesTable:
			b.I64(0)
			b.Null()
		}
	}
	return nil
}
