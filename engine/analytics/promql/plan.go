// This part takes a PromQL expression apart: into leaves, which nodes evaluate beside the data, and the rest of it,
// which the server evaluates over what the leaves came to. It is pure.
//
// # Leaves
//
// A leaf is a selector with the range function around it: rate(x[1m]), max_over_time(x[5m] offset 1h), x. It is
// evaluated for each series alone, so that series may lie on any node, and at the instants at which the expression
// needs it: its Grid. A window is never divided: who evaluates a leaf has all samples of a series.
//
// What a leaf came to takes its place as a selector of a name that nothing else has, with a sample at each instant
// and nowhere else, so that the engine needs no lookback: it is evaluated with one millisecond of it. Whoever reads
// the answers by Key gives each selector of Text what its leaves came to.
//
// Three things are not evaluated by a leaf alone:
//   - absent_over_time is asked of all series at once: its leaf is last_over_time, and the rest asks absent of it;
//   - a range selector that is the answer itself, x[5m] of an instant query, is fetched as it is;
//   - so is one whose function has a parameter that depends on series, quantile_over_time(scalar(y), x[5m]).

package promql

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
)

// Grid are the instants Start, Start+Step, … up to End, in milliseconds since the epoch of Unix. Step is at least 1.
type Grid struct{ Start, End, Step int64 }

// Steps is how many instants there are.
func (g Grid) Steps() int64 { return max(0, (g.End-g.Start)/g.Step+1) }

// Leaf is a part of an expression that is evaluated for each series alone.
type Leaf struct {
	// Key is by which selectors of the Query's Text find it; two leaves have one key when the same selector is
	// wanted on two grids.
	Key string
	// Expr is what is evaluated. What it does not need is blank, so that places in messages are those of the query.
	Expr string
	// Raw: Expr is a range selector, asked for once at the end of the grid; the samples are the answer.
	Raw  bool
	Grid Grid
	// Func is the range function, "" for a selector alone.
	Func string
	// Stats: of histograms only their counts and sums are looked at.
	Stats bool
	// Selector says which series, From and To when their samples are (milliseconds, both included).
	Selector []*labels.Matcher
	From, To int64
}

// QueryPlan is an expression taken apart.
type QueryPlan struct {
	// Text is evaluated over what the leaves came to, from Start to End.
	Text       string
	Leaves     []Leaf
	Start, End time.Time
	// Step is 0 for an instant query.
	Step time.Duration
	// Type is that of the answer.
	Type parser.ValueType
	// SingleLeaf: the one leaf is the answer, and Text is not evaluated.
	SingleLeaf bool
}

// PlanOptions are how an expression is read.
type PlanOptions struct {
	Parser parser.Parser
	// Lookback is how old a sample may be that a selector alone takes.
	Lookback time.Duration
	// SubqueryStep is in milliseconds that of a subquery which names none.
	SubqueryStep func(rangeMs int64) int64
}

// marker is a label that no series has: a selector with it finds the leaf that its value names. A regular expression
// is not taken for a label of what is absent.
const marker = "__leaf__"

// NewPlan takes an expression apart that is asked for at one instant (step 0) or from start to end.
// Its error is the parser's, or ErrUnsupported.
func NewPlan(text string, start, end time.Time, step time.Duration, o PlanOptions) (*QueryPlan, error) {
	expr, err := Parse(o.Parser, text)
	if err != nil {
		return nil, err
	}
	q := &QueryPlan{Start: start, End: end, Step: step, Type: expr.Type()}
	w := &walker{q: q, o: o, text: text, prefix: ":"}
	for strings.Contains(text, w.prefix) {
		w.prefix += ":"
	}
	if expr, err = promql.PreprocessExpr(expr, start, end, step); err != nil {
		return nil, err
	}
	grid := Grid{Start: start.UnixMilli(), End: end.UnixMilli(), Step: max(1, step.Milliseconds())}
	if m, ok := unwrap(expr).(*parser.MatrixSelector); ok {
		q.SingleLeaf = true
		s := m.VectorSelector.(*parser.VectorSelector)
		w.add(m, s, grid, "", m.Range, w.key())
		q.Leaves[0].Raw = true
		return q, nil
	}
	if err := w.walk(expr, grid); err != nil {
		return nil, err
	}
	q.Text = w.rewritten()
	return q, w.check()
}

// MaxSubquerySteps is at how many instants a subquery is evaluated at most: before the engine evaluates one, it makes
// two counters of 8 bytes for each instant (stats.NewChildWithStepTracking), whether or not anybody asks for
// statistics, and no limit of samples holds for them.
const MaxSubquerySteps = 100_000

// ErrUnsupported says what of PromQL cannot be asked here.
var ErrUnsupported = errors.New("not supported")

type walker struct {
	q      *QueryPlan
	o      PlanOptions
	text   string
	prefix string
	edits  []edit
}

// edit puts another text in a place of the query.
type edit struct {
	place posrange.PositionRange
	text  string
}

func (w *walker) walk(e parser.Expr, g Grid) error {
	switch n := e.(type) {
	case nil, *parser.NumberLiteral, *parser.StringLiteral:
		return nil
	case *parser.StepInvariantExpr:
		return w.walk(n.Expr, g)
	case *parser.ParenExpr:
		return w.walk(n.Expr, g)
	case *parser.UnaryExpr:
		return w.walk(n.Expr, g)
	case *parser.BinaryExpr:
		return errors.Join(w.walk(n.LHS, g), w.walk(n.RHS, g))
	case *parser.AggregateExpr:
		return errors.Join(w.walk(n.Param, g), w.walk(n.Expr, g))
	case *parser.SubqueryExpr:
		inner := w.subqueryGrid(n, g)
		if steps := inner.Steps(); steps > MaxSubquerySteps {
			return fmt.Errorf("a subquery has %d steps, and may have %d: shorten its range, or lengthen its step", steps,
				MaxSubquerySteps)
		}
		return w.walk(n.Expr, inner)
	case *parser.VectorSelector:
		w.selector(n, g, false)
		return nil
	case *parser.MatrixSelector:
		return w.raw(n, g)
	case *parser.Call:
		return w.call(n, g)
	}
	return fmt.Errorf("%w: %T", ErrUnsupported, e)
}

// subqueryGrid are the instants at which what is inside of a subquery is evaluated: multiples of its own step, as the
// engine has them.
func (w *walker) subqueryGrid(n *parser.SubqueryExpr, g Grid) Grid {
	step := n.Step.Milliseconds()
	if step == 0 {
		step = w.o.SubqueryStep(n.Range.Milliseconds())
	}
	start, end := g.Start, g.Start+(g.Steps()-1)*g.Step
	if n.Timestamp != nil {
		start, end = *n.Timestamp, *n.Timestamp
	}
	before := start - n.OriginalOffset.Milliseconds() - n.Range.Milliseconds()
	first := step * (before / step)
	if first <= before {
		first += step
	}
	return Grid{Start: first, End: end - n.OriginalOffset.Milliseconds(), Step: step}
}

func (w *walker) call(n *parser.Call, g Grid) error {
	switch n.Func.Name {
	case "info":
		return fmt.Errorf("%w: the function info", ErrUnsupported)
	case "timestamp", "start_timestamp":
		if s, ok := unwrap(n.Args[0]).(*parser.VectorSelector); ok {
			w.leaf(n, s, g, n.Func.Name, w.o.Lookback)
			return nil
		}
	case "absent":
		if s, ok := unwrap(n.Args[0]).(*parser.VectorSelector); ok {
			w.selector(s, g, true)
			return nil
		}
	}
	at := slices.IndexFunc(n.Args, func(a parser.Expr) bool { _, ok := unwrap(a).(*parser.MatrixSelector); return ok })
	if at < 0 || slices.ContainsFunc(n.Args, dependsOnSeries(n.Args[max(at, 0)])) {
		for _, a := range n.Args {
			if err := w.walk(a, g); err != nil {
				return err
			}
		}
		return nil
	}
	m := unwrap(n.Args[at]).(*parser.MatrixSelector)
	s := m.VectorSelector.(*parser.VectorSelector)
	if n.Func.Name == "absent_over_time" {
		w.absent(n, m, s, g)
		return nil
	}
	w.leaf(n, s, g, n.Func.Name, m.Range)
	return nil
}

// dependsOnSeries tells of the parameters of a function, apart from its range selector.
func dependsOnSeries(apart parser.Expr) func(parser.Expr) bool {
	return func(a parser.Expr) (depends bool) {
		if a == apart {
			return false
		}
		parser.Inspect(a, func(n parser.Node, _ []parser.Node) error {
			_, ok := n.(*parser.VectorSelector)
			depends = depends || ok
			return nil
		})
		return depends
	}
}

// unwrap is an expression without what is put around it.
func unwrap(e parser.Expr) parser.Expr {
	for {
		switch n := e.(type) {
		case *parser.ParenExpr:
			e = n.Expr
		case *parser.StepInvariantExpr:
			e = n.Expr
		default:
			return e
		}
	}
}

// selector is a leaf of a selector alone. Without an offset it stays as it is in the text; with one only absent asks
// for its labels.
func (w *walker) selector(s *parser.VectorSelector, g Grid, labels bool) {
	if s.OriginalOffset == 0 && s.OriginalOffsetExpr == nil && s.Timestamp == nil && !s.Smoothed && !s.Anchored {
		w.add(s, s, g, "", w.o.Lookback, Key(s.LabelMatchers))
		return
	}
	name := w.key()
	if labels {
		name = w.named(s)
	}
	w.edits = append(w.edits, edit{w.withWords(s), name})
	w.add(s, s, g, "", w.o.Lookback, w.key())
}

// experimental are the words after a selector that its place leaves out.
var experimental = regexp.MustCompile(`^(?i:\s*(smoothed|anchored)\b)`)

func (w *walker) withWords(s *parser.VectorSelector) posrange.PositionRange {
	p := s.PosRange
	if s.Smoothed || s.Anchored {
		p.End += posrange.Pos(len(experimental.FindString(w.text[p.End:])))
	}
	return p
}

func (w *walker) leaf(n parser.Expr, s *parser.VectorSelector, g Grid, name string, window time.Duration) {
	w.edits = append(w.edits, edit{n.PositionRange(), w.key()})
	w.add(n, s, g, name, window, w.key())
}

func (w *walker) absent(n *parser.Call, m *parser.MatrixSelector, s *parser.VectorSelector, g Grid) {
	w.edits = append(w.edits, edit{n.PosRange, "absent(" + w.named(s) + ")"})
	key := w.key()
	w.add(n, s, g, "last_over_time", m.Range, key)
	leaf := &w.q.Leaves[len(w.q.Leaves)-1]
	leaf.Expr = "last_over_time(" + resolved(m).String() + ")"
}

func (w *walker) raw(m *parser.MatrixSelector, g Grid) error {
	s := m.VectorSelector.(*parser.VectorSelector)
	w.edits = append(w.edits, edit{selectorOnly(s, w.text), w.named(s)})
	w.add(m, s, g, "", m.Range, w.key())
	leaf := &w.q.Leaves[len(w.q.Leaves)-1]
	span := time.Duration(leaf.To-leaf.From+1) * time.Millisecond
	leaf.Raw, leaf.Grid = true, Grid{Start: leaf.To, End: leaf.To, Step: 1}
	leaf.Expr = (&parser.MatrixSelector{VectorSelector: &parser.VectorSelector{Name: s.Name,
		LabelMatchers: s.LabelMatchers}, Range: span}).String()
	return nil
}

// selectorOnly is the place of a selector without its range, offset and instant.
func selectorOnly(s *parser.VectorSelector, text string) posrange.PositionRange {
	p := s.PosRange
	depth, quote := 0, byte(0)
	for i := p.Start; i < posrange.Pos(len(text)); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '[' && depth == 0:
			return posrange.PositionRange{Start: p.Start, End: i}
		}
	}
	return p
}

// key names the leaf that is added next.
func (w *walker) key() string { return w.prefix + strconv.Itoa(len(w.q.Leaves)) }

// named is the selector of the leaf that is added next, where its labels matter.
func (w *walker) named(s *parser.VectorSelector) string {
	with := append(slices.Clone(s.LabelMatchers), labels.MustNewMatcher(labels.MatchRegexp, marker, w.key()))
	return (&parser.VectorSelector{Name: s.Name, LabelMatchers: with}).String()
}

func (w *walker) add(n parser.Expr, s *parser.VectorSelector, g Grid, name string, window time.Duration, key string) {
	last := g.Start + (g.Steps()-1)*g.Step
	from, to := g.Start, last
	if s.Timestamp != nil {
		from, to = *s.Timestamp, *s.Timestamp
	}
	offset := s.OriginalOffset.Milliseconds()
	l := Leaf{Key: key, Expr: w.alone(n), Grid: Grid{Start: g.Start, End: last, Step: g.Step}, Func: name,
		Stats: s.SkipHistogramBuckets, Selector: s.LabelMatchers, From: from - offset - window.Milliseconds() + 1,
		To: to - offset}
	if s.Smoothed || s.Anchored {
		l.From, l.To = l.From-w.o.Lookback.Milliseconds(), l.To+w.o.Lookback.Milliseconds()
	}
	for i := range w.q.Leaves {
		// One selector is found by one key, whatever is looked at of it.
		if o := &w.q.Leaves[i]; o.Key == key && o.Stats != l.Stats {
			o.Stats, l.Stats = false, false
		}
	}
	if slices.ContainsFunc(w.q.Leaves, func(o Leaf) bool { return o.Key == key && o.Grid == l.Grid }) {
		return
	}
	w.q.Leaves = append(w.q.Leaves, l)
}

// alone is the text of an expression with everything around it blank, or, where it speaks of the query that it is in
// (@ start(), durations that are computed), what it comes to.
func (w *walker) alone(n parser.Expr) string {
	context := false
	parser.Inspect(n, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			// The place of a selector leaves out the experimental words after it.
			context = context || n.StartOrEnd != 0 || n.OriginalOffsetExpr != nil || n.Smoothed || n.Anchored
		case *parser.MatrixSelector:
			context = context || n.RangeExpr != nil
		case *parser.Call:
			context = context || slices.Contains([]string{"start", "end", "range", "step"}, n.Func.Name)
		}
		return nil
	})
	p := n.PositionRange()
	if context {
		return blank(w.text[:p.Start]) + resolved(n).String()
	}
	return blank(w.text[:p.Start]) + w.text[p.Start:p.End]
}

// resolved has what a selector refers to in place of the reference.
func resolved(n parser.Expr) parser.Expr {
	parser.Inspect(n, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			n.StartOrEnd, n.OriginalOffsetExpr = 0, nil
		case *parser.MatrixSelector:
			n.RangeExpr = nil
		}
		return nil
	})
	return n
}

// blank is a text of the same length and lines that says nothing.
func blank(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c != '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

// rewritten is the query with its leaves replaced. Where the new text is shorter, blanks keep what follows in place.
func (w *walker) rewritten() string {
	slices.SortFunc(w.edits, func(a, b edit) int { return int(a.place.Start) - int(b.place.Start) })
	var b strings.Builder
	at := posrange.Pos(0)
	for _, e := range w.edits {
		b.WriteString(w.text[at:e.place.Start])
		b.WriteString(e.text)
		old := w.text[e.place.Start:e.place.End]
		if len(old) > len(e.text) {
			b.WriteString(blank(old[len(e.text):]))
		}
		at = e.place.End
	}
	b.WriteString(w.text[at:])
	return b.String()
}

// check holds that each selector that is left finds its leaf.
func (w *walker) check() error {
	expr, err := w.o.Parser.ParseExpr(w.q.Text)
	if err != nil {
		return fmt.Errorf("taking %q apart: %q: %w", w.text, w.q.Text, err)
	}
	keys := map[string]bool{}
	for _, l := range w.q.Leaves {
		keys[l.Key] = true
	}
	return errors.Join(parserError(expr, func(s *parser.VectorSelector) error {
		if !keys[Key(s.LabelMatchers)] {
			return fmt.Errorf("taking %q apart: nothing for %s in %q", w.text, s, w.q.Text)
		}
		return nil
	}))
}

func parserError(expr parser.Expr, fn func(*parser.VectorSelector) error) (err error) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			err = errors.Join(err, fn(s))
		}
		return nil
	})
	return err
}

// Key is by which a selector of a Query's Text finds its leaves.
func Key(selector []*labels.Matcher) string {
	texts := make([]string, 0, len(selector))
	for _, m := range selector {
		if m.Name == marker {
			return m.Value
		}
		if len(selector) == 1 && m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual &&
			strings.HasPrefix(m.Value, ":") {
			return m.Value
		}
		texts = append(texts, m.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

// maxDepth is how far an expression may be nested, and how many operators it may have: the evaluator recurses
// for each level, and the parser's time grows with the square of operators in a row.
const maxDepth = 1000

// ErrTooDeep says that an expression is nested too deeply to be looked at.
var ErrTooDeep = fmt.Errorf(
	"the expression is nested more than %d levels deep, or has more than %d operators",
	maxDepth,
	maxDepth,
)

// Parse reads an expression, unless it is nested too deeply.
func Parse(p parser.Parser, text string) (parser.Expr, error) {
	depth, operators := 0, 0
	lexer := parser.Lex(text)
	for item := (parser.Item{}); item.Typ != parser.EOF && item.Typ != parser.ERROR; {
		lexer.NextItem(&item)
		switch {
		case item.Typ == parser.LEFT_PAREN, item.Typ == parser.LEFT_BRACKET, item.Typ == parser.LEFT_BRACE:
			depth++
		case item.Typ == parser.RIGHT_PAREN, item.Typ == parser.RIGHT_BRACKET, item.Typ == parser.RIGHT_BRACE:
			depth--
		case item.Typ.IsOperator():
			operators++
		}
		if depth > maxDepth || operators > maxDepth {
			return nil, ErrTooDeep
		}
	}
	return p.ParseExpr(text)
}
