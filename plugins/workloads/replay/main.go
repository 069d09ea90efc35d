// Command replay is the workload plugin that issues again what was recorded: the
// operations of the template's workload.feed, at their pace or another.
package main

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/params"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

func init() { sdk.ServeWorkload(replay{}) }

func main() {}

type replay struct{}

// Manifest describes the plugin.
func (replay) Manifest() sdk.Manifest {
	return sdk.Manifest{
		Name: "replay", Version: "1.0.0", Title: "Replay", Author: "Loadstone",
		Description: "Issues the operations of a recorded run or of a CSV file again (workload.feed), at their own pace, " +
			"faster, slower, or as fast as possible.",
		Parameters: parameterSchema,
		Feed:       true,
	}
}

const parameterSchema = `{
"$schema":"https://json-schema.org/draft/2020-12/schema",
"type":"object","additionalProperties":false,
"properties":{
"speed":{"title":"Speed","description":"1: the recorded pace. 2: twice as fast. 0: as fast as possible.",
"type":"number","minimum":0,"maximum":1000000,"default":1},
"statements":{"title":"Statements","description":"Statements that a feed names: a list of {id, sql, binds: [{name, type}]}. A recorded run brings its own.",
"type":"array","maxItems":1000,"items":{"type":"object","additionalProperties":false,"required":["id","sql"],
"properties":{
"id":{"title":"Id","type":"string","minLength":1,"maxLength":200},
"sql":{"title":"SQL","description":"One statement, with parameters written :name.","type":"string","minLength":1,"maxLength":100000},
"kind":{"title":"Kind","description":"Kind in figures; by default from the verb.","enum":["POINT_LOOKUP","RANGE_SCAN","INSERT","UPDATE","DELETE","GENERIC_SQL"]},
"writes":{"title":"Writes","type":"boolean"},
"columns":{"title":"Result columns","type":"array","maxItems":255,"items":{"type":"string"}},
"transaction":{"title":"Transaction","description":"How transactions that begin with it are called in figures.","type":"string","maxLength":200},
"recorded":{"title":"Recorded","description":"The SQL is that of a recorded run: its parameters are $1, $2 … and the binds are in their order.","type":"boolean"},
"dialect":{"title":"Dialect","description":"Of a recorded run's SQL: postgres or snowflake.","type":"string"},
"binds":{"title":"Parameters","type":"array","maxItems":255,"items":{"type":"object","additionalProperties":false,"required":["name"],"properties":{
"name":{"type":"string","minLength":1,"maxLength":63},"type":{"description":"text when left out","enum":["i64","f64","text","bytes","bool","timestamp"]}}}}
}}}}}`

var kinds = []string{sdk.PointLookup, sdk.RangeScan, sdk.Insert, sdk.Update, sdk.Delete, sdk.GenericSQL}

type options struct {
	speed      float64
	statements []sdk.Statement
}

func readOptions(doc *jsondoc.Value) (options, error) {
	o := options{speed: 1}
	r := params.Read(doc)
	r.Float("speed", 0, 1_000_000, &o.speed)
	list := r.Value("statements")
	if err := r.Done(); err != nil {
		return o, err
	}
	for i := range list.Len() {
		s, err := readStatement(list.At(i), "statements["+strconv.Itoa(i)+"]")
		if err != nil {
			return o, err
		}
		o.statements = append(o.statements, s)
	}
	return o, nil
}

func readStatement(doc *jsondoc.Value, path string) (sdk.Statement, error) {
	s := sdk.Statement{
		NoRowsHint: "the table is not as it was when these operations were recorded: restore it; with kind: " +
			"GENERIC_SQL a statement need not find rows",
	}
	var sql string
	recorded, kind := false, -1
	r := params.At(doc, path)
	r.Text("id", &s.ID)
	r.Text("sql", &sql)
	r.Choice("kind", kinds, &kind)
	r.Bool("writes", &s.Writes)
	s.Columns = r.Value("columns").Strings()
	r.Text("transaction", &s.Transaction)
	r.Bool("recorded", &recorded)
	dialect := "postgres"
	r.Text("dialect", &dialect)
	binds := r.Value("binds")
	if err := r.Done(); err != nil {
		return s, err
	}
	for i := range binds.Len() {
		b := sdk.Bind{Type: sdk.Text}
		br := params.At(binds.At(i), path+".binds["+strconv.Itoa(i)+"]")
		br.Text("name", &b.Name)
		br.Text("type", &b.Type)
		if err := br.Done(); err != nil {
			return s, err
		}
		s.Binds = append(s.Binds, b)
	}
	s.Kind = sdk.GenericSQL
	if kind >= 0 {
		s.Kind = kinds[kind]
	}
	if recorded {
		s.SQL = map[string]string{dialect: sql}
		return s, nil
	}
	text, err := sqltext.Parse(sql)
	if err != nil {
		return s, errors.New(path + ".sql (" + s.ID + "): " + err.Error())
	}
	s.Writes = s.Writes || text.Writes
	if kind < 0 {
		switch text.Verb {
		case "INSERT":
			s.Kind = sdk.Insert
		case "UPDATE":
			s.Kind = sdk.Update
		case "DELETE":
			s.Kind = sdk.Delete
		}
	}
	return s, place(text, &s, path)
}

// place writes the SQL with the numbers of the binds, whose order is that of the
// lines' values, or with a mark for each.
func place(text *sqltext.Statement, s *sdk.Statement, path string) error {
	order := make([]int, len(text.Names))
	used := make([]bool, len(s.Binds))
	for n, name := range text.Names {
		order[n] = -1
		for i, b := range s.Binds {
			if b.Name == name {
				order[n], used[i] = i, true
			}
		}
		if order[n] < 0 {
			return errors.New(path + ".binds: :" + name + " in the SQL of " + s.ID + " has no bind. Add {name: " + name +
				", type: …}")
		}
	}
	for i, b := range s.Binds {
		if !used[i] {
			return errors.New(path + ".binds: :" + b.Name + " does not occur in the SQL of " + s.ID)
		}
	}
	marked, marks := text.Marked()
	byBind := make([]int, len(marks))
	for i, n := range marks {
		byBind[i] = order[n]
	}
	s.SQL = map[string]string{"postgres": text.NumberedBy(order), "snowflake": marked}
	s.BindOrder = map[string][]int{"snowflake": byBind}
	return nil
}

// Statements returns the statements of the parameters.
func (replay) Statements(doc *jsondoc.Value, _ []sdk.Table) ([]sdk.Statement, error) {
	o, err := readOptions(doc)
	return o.statements, err
}

// Open starts a stream.
func (replay) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	o, err := readOptions(req.Params)
	if err != nil {
		return nil, err
	}
	if len(o.statements) == 0 {
		return nil, errors.New("statements is empty: list what the lines of the feed name")
	}
	return &stream{speed: o.speed}, nil
}

// stream gives out what it is fed.
type stream struct {
	speed float64
	ops   []abi.Op
	ended bool
	// due is the time of the next operation in the recording and issued the sum of
	// the pauses given out, in µs: rounding never adds up.
	due, issued float64
}

// Feed takes operations.
func (s *stream) Feed(chunk []byte) error {
	if len(chunk) == 0 {
		s.ended = true
		return nil
	}
	ops, err := abi.Decode(chunk)
	s.ops = ops
	return err
}

// Fill writes the next operations, transactions whole.
func (s *stream) Fill(b *sdk.Batch, limit int) error {
	inside := false
	for b.Len() < limit || inside {
		if len(s.ops) == 0 {
			if s.ended {
				return nil
			}
			return sdk.ErrFeedMe
		}
		op := s.ops[0]
		if op.Statement == abi.StatementDelay {
			s.ops = s.ops[1:]
			s.due += float64(op.Args[0].I)
			continue
		}
		if s.speed > 0 && !inside {
			if gap := s.due/s.speed - s.issued; gap >= 1 {
				pause := min(int64(gap), abi.MaxDelayMicros)
				s.issued += float64(pause)
				b.Delay(pause)
				continue
			}
		}
		s.ops = s.ops[1:]
		inside = op.Statement == abi.StatementBegin || inside && op.Statement != abi.StatementCommit &&
			op.Statement != abi.StatementRollback
		put(b, &op)
	}
	return nil
}

func put(b *sdk.Batch, op *abi.Op) {
	b.Op(op.Statement)
	for _, v := range op.Args {
		switch v.Type {
		case abi.TypeNull:
			b.Null()
		case abi.TypeI64:
			b.I64(v.I)
		case abi.TypeF64:
			b.F64(v.F)
		case abi.TypeText:
			b.TextBytes(v.Data)
		case abi.TypeBytes:
			b.Blob(v.Data)
		case abi.TypeBool:
			b.Bool(v.I == 1)
		case abi.TypeTimestamp:
			b.Timestamp(v.I)
		case abi.TypeRef:
			b.Ref(uint8(v.I>>8), uint8(v.I))
		}
	}
}
