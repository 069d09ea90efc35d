package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// managers are the packages whose goroutines look after others: nodes, runs, streams, subscribers.
// One of them that waits for who has gone away holds up all that it looks after.
var managers = []string{"engine/results/record", "engine/run", "engine/run/writer", "engine/run/finalize",
	"engine/run/recovery", "engine/cluster/assignment", "engine/cluster/pki",
	"engine/cluster/nodes", "engine/cluster/protocol", "engine/cluster/rpc", "engine/worker", "server/httpx",
	"server/live", "cli", "cli/wiring"}

// room begins the comment on the line of a send, or on the one above, that says why the channel
// has room for it. The rule then looks for the buffer.
const room = "// room: "

// TestNoManagerWaitsForASendAlone: a send to a channel stands in a select that also hears of a
// context's end, or of a channel that the package closes, or has a default; or it says why there
// is room in the channel's buffer, and the channel is made with one.
func TestNoManagerWaitsForASendAlone(t *testing.T) {
	packages, seen := map[string][]string{}, map[string]bool{}
	sources(t, func(name string) {
		for _, m := range managers {
			if path.Dir(name) == m {
				packages[path.Dir(name)] = append(packages[path.Dir(name)], name)
				seen[m] = true
			}
		}
	})
	for _, m := range managers {
		if !seen[m] {
			t.Errorf("%s has no source any more: it leaves the list of managers", m)
		}
	}
	sends := 0
	for _, names := range packages {
		p := newChannels()
		for _, name := range names {
			src, err := os.ReadFile(filepath.FromSlash(name))
			if err != nil {
				t.Fatal(err)
			}
			p.read(t, name, string(src))
		}
		for _, text := range p.judge() {
			t.Error(text)
		}
		sends += p.sends
	}
	if sends < 20 {
		t.Errorf("only %d sends were found: the rule looks in the wrong place", sends)
	}
}

// channels is what a package does with its channels. A channel is known by the last part of
// its name: the rule is about words, and needs no types.
type channels struct {
	files  *token.FileSet
	parsed []*ast.File
	// closed are those that are closed somewhere, roomy those that are made with a buffer, tight
	// those that are made without.
	closed, roomy, tight map[string]bool
	sends                int
}

func newChannels() *channels {
	return &channels{files: token.NewFileSet(), closed: map[string]bool{}, roomy: map[string]bool{},
		tight: map[string]bool{}}
}

// read takes in a file.
func (c *channels) read(t *testing.T, name, src string) {
	t.Helper()
	file, err := parser.ParseFile(c.files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	c.parsed = append(c.parsed, file)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "close" && len(n.Args) == 1 {
				c.closed[lastName(n.Args[0])] = true
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if len(n.Rhs) == len(n.Lhs) {
					c.made(lastName(to), n.Rhs[i])
				}
			}
		case *ast.KeyValueExpr:
			c.made(lastName(n.Key), n.Value)
		case *ast.ValueSpec:
			for i, to := range n.Names {
				if i < len(n.Values) {
					c.made(to.Name, n.Values[i])
				}
			}
		}
		return true
	})
}

// made takes note of a channel that an expression makes.
func (c *channels) made(name string, e ast.Expr) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	f, ok := call.Fun.(*ast.Ident)
	if _, channel := call.Args[0].(*ast.ChanType); !ok || !channel || f.Name != "make" {
		return
	}
	if len(call.Args) == 2 {
		if size, literal := call.Args[1].(*ast.BasicLit); !literal || size.Value != "0" {
			c.roomy[name] = true
			return
		}
	}
	c.tight[name] = true
}

// lastName is the last part of a name: done of s.done.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.ParenExpr:
		return lastName(e.X)
	}
	return ""
}

// judge says which sends may wait for ever.
func (c *channels) judge() (wrong []string) {
	for _, file := range c.parsed {
		comments := map[int]string{}
		for _, group := range file.Comments {
			for _, line := range group.List {
				comments[c.files.Position(line.Pos()).Line] = line.Text
			}
		}
		ends := map[ast.Stmt]bool{} // sends in a select that another of its cases ends
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectStmt); ok && slices.ContainsFunc(s.Body.List, c.endsWaiting) {
				for _, clause := range s.Body.List {
					ends[clause.(*ast.CommClause).Comm] = true
				}
			}
			return true
		})
		ast.Inspect(file, func(n ast.Node) bool {
			send, ok := n.(*ast.SendStmt)
			if !ok {
				return true
			}
			c.sends++
			at := c.files.Position(send.Pos())
			reason := cmp.Or(because(comments[at.Line]), because(comments[at.Line-1]))
			switch name := lastName(send.Chan); {
			case ends[send]:
			case reason == "":
				wrong = append(wrong, fmt.Sprintf("%s: a send to %s waits for ever when nobody receives: a select with "+
					"ctx.Done() ends it, or %q says why there is room in its buffer", at, name, room+"…"))
			case !c.roomy[name] || c.tight[name]:
				wrong = append(wrong, fmt.Sprintf("%s: %s is said to have room, and the package does not always make it "+
					"with a buffer", at, name))
			}
			return true
		})
	}
	return wrong
}

// because is the reason that a comment gives for a send.
func because(comment string) string {
	_, reason, ok := strings.Cut(comment, room)
	if !ok || len(strings.Fields(reason)) < 3 {
		return "" // a word is no reason
	}
	return reason
}

// endsWaiting reports whether a case of a select ends its waiting: a default, the end of a
// context, or a channel that the package closes. A timer does not: who waits for it each time
// is as slow as who waits for ever.
func (c *channels) endsWaiting(clause ast.Stmt) bool {
	comm := clause.(*ast.CommClause).Comm
	var from ast.Expr
	switch s := comm.(type) {
	case nil:
		return true
	case *ast.ExprStmt:
		from = s.X
	case *ast.AssignStmt:
		from = s.Rhs[0]
	default:
		return false
	}
	receive, ok := from.(*ast.UnaryExpr)
	if !ok || receive.Op != token.ARROW {
		return false
	}
	if call, ok := receive.X.(*ast.CallExpr); ok {
		return lastName(call.Fun) == "Done" && len(call.Args) == 0
	}
	return c.closed[lastName(receive.X)]
}

// TestTheRuleOfSends shows the rule sends that it lets through, and sends that it does not.
func TestTheRuleOfSends(t *testing.T) {
	for what, tc := range map[string]struct {
		body string
		fits bool
	}{
		"alone":                  {"ch <- 1", false},
		"in a goroutine":         {"go func() { ch <- 1 }()", false},
		"with a context":         {"select { case ch <- 1: case <-ctx.Done(): }", true},
		"with a cause":           {"select { case ch <- 1: case <-s.ctx().Done(): }", true},
		"with a default":         {"select { case ch <- 1: default: }", true},
		"with a closed channel":  {"select { case ch <- 1: case <-s.over: }", true},
		"its end is received":    {"select { case ch <- 1: case _, ok := <-s.over: _ = ok }", true},
		"with another channel":   {"select { case ch <- 1: case <-s.other: }", false},
		"with a timer":           {"select { case ch <- 1: case <-time.After(time.Second): }", false},
		"with a method's result": {"select { case ch <- 1: case <-s.answer(1): }", false},
		"two sends":              {"select { case ch <- 1: case s.other <- 2: }", false},
		"in a case's body":       {"select { case <-ctx.Done(): ch <- 1 }", false},
		"with room":              {"roomy <- 1 // room: one result of one call", true},
		"with room above":        {"// room: one result of one call\n\troomy <- 1", true},
		"room without a reason":  {"roomy <- 1 // room: yes", false},
		"room that is not there": {"ch <- 1 // room: one result of one call", false},
		"room only at times":     {"roomy <- 1 // room: one result of one call\n\troomy = make(chan int)", false},
		"room of nought":         {"s.nought <- 1 // room: one result of one call", false},
	} {
		t.Run(what, func(t *testing.T) {
			c := newChannels()
			c.read(t, "x.go", "package x\n\nfunc f() {\n\troomy := make(chan int, 1)\n\ts := s{nought: make(chan int, 0)}\n\t"+
				tc.body+"\n}\n\nfunc g() { close(s.over) }\n")
			if wrong := c.judge(); (len(wrong) == 0) != tc.fits {
				t.Errorf("%s: %q", tc.body, wrong)
			}
		})
	}
}
