// Package plan binds a SELECT to the schemas of its sources: a tree of scans, filters, projections, LAGs, joins and
// aggregates, with every name and type checked. A plan is run once, since its expressions hold the memory that they are
// evaluated in; who runs a query again binds it again.
package plan

import (
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/aggregate"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Schemas are the sources that a query can name.
type Schemas interface {
	// Schema returns the columns of a source.
	Schema(name string) ([]column.Column, bool)
	// Names are those of all sources, for suggestions.
	Names() []string
}

// Plan is a query that is bound.
type Plan struct {
	Root    Node
	Scans   []*Scan
	Columns []column.Column
	Faults  *expression.Faults
	// Drop says that rows are lost, and counted, where the query cannot keep up.
	Drop bool
	// Memory is how many bytes the query may hold, 0 where it does not say.
	Memory int
}

// Node is a step of a plan.
type Node interface {
	// Columns are those of the rows that it gives.
	Columns() []column.Column
	// Inputs are the steps that it takes rows from.
	Inputs() []Node
	// Describe is a line of EXPLAIN.
	Describe() string
}

// Scan reads a source. Rows are told by their index which source of Plan.Scans they are for.
type Scan struct {
	Index  int
	Source string
	// At is where the statement names it, in bytes.
	At      int
	Columns []column.Column
	// Time is the column whose values are the clock of the window above, -1 where there is none.
	Time int
}

// Filter lets rows through for which the condition is true.
type Filter struct {
	In        Node
	Condition *expression.Expr
	text      string
}

// Project computes columns. From says of each which column of In it is, -1 when it is computed.
type Project struct {
	In    Node
	Items []*expression.Expr
	From  []int
	cols  []column.Column
	text  string
}

// Lag adds columns: values of earlier rows of the same partition.
type Lag struct {
	In     Node
	Values []LagValue
	cols   []column.Column
	text   string
}

// LagValue is the value of X Offset rows ago.
type LagValue struct {
	X         *expression.Expr
	Partition []*expression.Expr
	Offset    int
}

// Window is a window in the unit of its time: microseconds of a TIMESTAMP, milliseconds of an integer.
type Window struct {
	Size, Advance, Lateness int64
	// Scale is how many microseconds a unit has.
	Scale int64
	// Span is how far behind its start the end of a window is shown; Size but for aggregates of joins.
	Span int64
	text string
}

// Join pairs rows of a window. Keys are compared first, On is the rest of the condition, over the columns of the join.
type Join struct {
	Left, Right         Node
	LeftKeys, RightKeys []*expression.Expr
	LeftTime, RightTime *expression.Expr
	// LeftTraced and RightTraced say that scans tell the time.
	LeftTraced, RightTraced bool
	On                      *expression.Expr
	Window                  Window
	cols                    []column.Column
	text                    string
}

// Aggregate adds rows up by window and group. Its columns are start, end, the groups, and the results.
type Aggregate struct {
	In        Node
	Time      *expression.Expr
	Traced    bool
	Groups    []*expression.Expr
	Functions []aggregate.Function
	Args      []*expression.Expr // nil of COUNT(*)
	Window    Window
	cols      []column.Column
	text      string
}

// Columns are those of the source.
func (n *scanNode) Columns() []column.Column { return n.Scan.Columns }

// scanNode is a scan under the name that the query gives it.
type scanNode struct{ *Scan }

// Inputs are none.
func (n *scanNode) Inputs() []Node { return nil }

// Describe is a line of EXPLAIN.
func (n *scanNode) Describe() string { return "Scan " + n.Source }

// ScanOf returns the scan that a node is.
func ScanOf(n Node) (*Scan, bool) {
	s, ok := n.(*scanNode)
	if !ok {
		return nil, false
	}
	return s.Scan, true
}

// Columns are those of the input.
func (n *Filter) Columns() []column.Column { return n.In.Columns() }

// Inputs is one.
func (n *Filter) Inputs() []Node { return []Node{n.In} }

// Describe is a line of EXPLAIN.
func (n *Filter) Describe() string { return "Filter " + n.text }

// Columns are what is computed.
func (n *Project) Columns() []column.Column { return n.cols }

// Inputs is one.
func (n *Project) Inputs() []Node { return []Node{n.In} }

// Describe is a line of EXPLAIN.
func (n *Project) Describe() string { return "Project " + n.text }

// Columns are those of the input, and the values of earlier rows.
func (n *Lag) Columns() []column.Column { return n.cols }

// Inputs is one.
func (n *Lag) Inputs() []Node { return []Node{n.In} }

// Describe is a line of EXPLAIN.
func (n *Lag) Describe() string { return "Lag " + n.text }

// Columns are start and end, those of the left and those of the right side.
func (n *Join) Columns() []column.Column { return n.cols }

// Inputs are the left and the right side.
func (n *Join) Inputs() []Node { return []Node{n.Left, n.Right} }

// Describe is a line of EXPLAIN.
func (n *Join) Describe() string { return "Join " + n.text + " in " + n.Window.text }

// Columns are start, end, the groups and the results.
func (n *Aggregate) Columns() []column.Column { return n.cols }

// Inputs is one.
func (n *Aggregate) Inputs() []Node { return []Node{n.In} }

// Describe is a line of EXPLAIN.
func (n *Aggregate) Describe() string { return "Aggregate " + n.text + " in " + n.Window.text }

// Text is the plan as EXPLAIN shows it, the last step first.
func (p *Plan) Text() string {
	var b strings.Builder
	write(&b, p.Root, 0, nil)
	return b.String()
}

// Into binds the rows of a plan to the schema of a sink, by position; what a column cannot take is refused.
func (p *Plan) Into(source string, at int, sink string, schema []column.Column) error {
	if len(schema) == 0 {
		return nil
	}
	if len(schema) != len(p.Columns) {
		return sql.Errorf(sql.BinderError, source, at, "", "the sink %s has %d columns, the query gives %d",
			sink, len(schema), len(p.Columns))
	}
	n := &Project{In: p.Root, cols: schema, text: "into " + sink}
	scope := expression.Scope{Source: source, Columns: p.Columns, Faults: p.Faults}
	for i, c := range schema {
		column := &sql.Column{Name: sql.Name{Text: fmt.Sprintf("$%d", i), At: at}}
		scope.Columns[i].Name = column.Name.Text
		x, err := expression.As(column, c.Type, scope)
		if err != nil {
			return sql.Errorf(sql.BinderError, source, at, "cast it in the query",
				"the column %s of the sink %s is %s, the query gives %s", c.Name, sink, c.Type, p.Columns[i].Type)
		}
		n.Items, n.From = append(n.Items, x), append(n.From, i)
	}
	p.Root, p.Columns = n, schema
	return nil
}
