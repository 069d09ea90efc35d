package plan

import (
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// Head is the part of a plan that can run where a source is, apart from the rest: what needs no memory of other rows,
// and the first aggregate, added up in part. What it gives goes to the tail, the rest of the plan.
type Head struct {
	Scan *Scan
	// Top is the last step whose rows are those of its source alone: the scan, or filters and projections over it.
	Top Node
	// Partial is the aggregate that takes them, nil where another step does: then the rows of Top are what is given.
	Partial *Aggregate
}

// Heads are those of the scans, in their order.
func (p *Plan) Heads() []Head {
	heads := make([]Head, len(p.Scans))
	var walk func(n, above Node)
	walk = func(n, above Node) {
		if s := sourceOf(n); s != nil {
			h := Head{Scan: s, Top: n}
			if a, is := above.(*Aggregate); is {
				h.Partial = a
			}
			heads[s.Index] = h
			return
		}
		for _, in := range n.Inputs() {
			walk(in, n)
		}
	}
	walk(p.Root, nil)
	return heads
}

// sourceOf is the scan whose rows a step gives, filtered or projected; nil where a step between remembers others.
func sourceOf(n Node) *Scan {
	for {
		switch at := n.(type) {
		case *scanNode:
			return at.Scan
		case *Filter:
			n = at.In
		case *Project:
			n = at.In
		default:
			return nil
		}
	}
}

// Text is the head as EXPLAIN shows it, the last step first.
func (h Head) Text() string {
	var b strings.Builder
	depth := 0
	if h.Partial != nil {
		fmt.Fprintf(&b, "Partial %s\n", h.Partial.Describe())
		depth++
	}
	write(&b, h.Top, depth, nil)
	return b.String()
}

// Tail is the rest of the plan, the last step first. remote says of each scan that a head of it runs elsewhere, here
// that one of its sources is read beside the tail.
func (p *Plan) Tail(remote, here func(scan int) bool) string {
	heads := p.Heads()
	var b strings.Builder
	write(&b, p.Root, 0, func(n Node, depth int) (done bool) {
		for _, h := range heads {
			if h.Top != n || !remote(h.Scan.Index) {
				continue
			}
			what := "rows"
			if h.Partial != nil {
				what = "partial aggregates"
			}
			fmt.Fprintf(&b, "%sMerge %s of %s\n", strings.Repeat("  ", depth), what, h.Scan.Source)
			return !here(h.Scan.Index)
		}
		return false
	})
	return b.String()
}

// write writes a step and those below it; instead may write another text for one, and says that it was all.
func write(b *strings.Builder, n Node, depth int, instead func(n Node, depth int) bool) {
	if instead != nil && instead(n, depth) {
		return
	}
	fmt.Fprintf(b, "%s%s\n", strings.Repeat("  ", depth), n.Describe())
	for _, in := range n.Inputs() {
		write(b, in, depth+1, instead)
	}
}

// Shape is what two processes have to agree on that share the plan: its steps, and the types of what heads give. They
// plan for themselves; another version may plan otherwise.
func (p *Plan) Shape() string {
	var b strings.Builder
	b.WriteString(p.Text())
	types := func(columns []column.Column) {
		for _, c := range columns {
			fmt.Fprintf(&b, " %s %s", c.Name, c.Type)
		}
		b.WriteByte('\n')
	}
	for _, h := range p.Heads() {
		fmt.Fprintf(&b, "%d %s: %d", h.Scan.Index, h.Scan.Source, h.Scan.Time)
		types(h.Top.Columns())
		if a := h.Partial; a != nil {
			fmt.Fprintf(&b, "%+v %t", a.Window, a.Traced)
			for _, f := range a.Functions {
				fmt.Fprintf(&b, " %s(%s)%g", f.Name, f.Arg, f.Q)
			}
			types(a.Columns())
		}
	}
	return b.String()
}
