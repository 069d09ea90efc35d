package exec_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// nodeOf runs the heads of some origins, and has frames on their way to the tail.
type nodeOf struct {
	q      *flow.Query
	w      *flow.Writer
	frames [][]byte
	open   int
}

// split answers a query on two nodes, that of the tail and one or two others, each with some of the origins. Frames of
// a node arrive in their order, and otherwise whenever they like.
func split(t *testing.T, r *rand.Rand, query string, tables map[string][]aRow, disorder int64) (
	[][]string, flow.Counts,
) {
	t.Helper()
	plan1 := func() *plan.Plan { return planned(t, query) } // each process binds for itself
	p := plan1()
	var all [][]string
	origins := originsOf(r, p, 4, disorder)
	nodes := make([]*nodeOf, 1+r.IntN(2))
	for i := range nodes {
		n := &nodeOf{}
		n.w = flow.NewWriter(func(frame []byte) error { n.frames = append(n.frames, frame); return nil })
		n.q = flow.New(plan1(), flow.Options{Origins: origins, Now: time.Now, Heads: n.w})
		nodes[i] = n
	}
	tail := flow.New(p, flow.Options{Origins: origins, Budget: 1 << 30, Now: time.Now, Out: into(&all)})
	feeders := feeding(r, p, origins, tables, disorder)
	on := map[*feeder]*nodeOf{}
	var elsewhere [][2]int
	for _, f := range feeders {
		if i := r.IntN(len(nodes) + 1); i < len(nodes) {
			on[f] = nodes[i]
			nodes[i].open++
			elsewhere = append(elsewhere, [2]int{f.scan, f.origin})
		}
	}
	reader := flow.NewReader(tail, elsewhere)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, query)
		}
	}
	for len(feeders) > 0 || reader.Open() > 0 {
		if n := nodes[r.IntN(len(nodes))]; len(n.frames) > 0 && r.IntN(2) == 0 {
			must(reader.Read(n.frames[0]))
			n.frames = n.frames[1:]
		}
		if len(feeders) == 0 {
			continue
		}
		i := r.IntN(len(feeders))
		f := feeders[i]
		n, q := on[f], tail
		if n != nil {
			q = n.q
		}
		if len(f.rows) == 0 {
			must(q.End(f.scan, f.origin))
			feeders = slices.Delete(feeders, i, i+1)
		} else {
			must(q.Push(f.scan, f.origin, f.next(t, r)))
		}
		if n == nil {
			continue
		}
		if r.IntN(10) == 0 {
			must(q.Flush())
		}
		if r.IntN(3) > 0 || len(f.rows) == 0 {
			must(n.w.Sync())
		}
	}
	c := tail.Counts()
	for _, n := range nodes {
		more := n.q.Counts()
		c.In, c.Late, c.Cast, c.Overflow = c.In+more.In, c.Late+more.Late, c.Cast+more.Cast, c.Overflow+more.Overflow
		if more.State != 0 {
			t.Fatalf("a head that has ended holds %d bytes", more.State)
		}
	}
	return all, c
}

func planned(t *testing.T, query string) *plan.Plan {
	t.Helper()
	parsed, err := sql.Parse(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	p, err := plan.Bind(query, parsed[0].Statement.(*sql.CreateQuery).Select, schemas{"t": tColumns, "u": tColumns})
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	return p
}

// TestSplitWindowsAreThoseOfPostgres: queries that are carried out on several nodes give the same.
func TestSplitWindowsAreThoseOfPostgres(t *testing.T) { windows(t, split, many(150), 3) }

// TestSplitJoinsAreThoseOfPostgres: and so do joins, whose sides are read on different nodes.
func TestSplitJoinsAreThoseOfPostgres(t *testing.T) { joins(t, split) }

// TestASplitQueryIsTheSame: row for row, also where rows are late, and in every count: late rows are late wherever they
// were added up.
func TestASplitQueryIsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 18))
	rows := makeRows(r, 4000)
	lates := int64(0)
	for range many(60) {
		query := []string{
			"SELECT start, end, k, COUNT(*) AS n, LAST(v) AS l, MIN(k) AS m, SUM(f) AS s FROM t GROUP BY k " +
				"WINDOW SLIDING(ts, SIZE 60 SEC, ADVANCE BY 25 SEC, LATENESS 7 SEC) INTO s",
			"SELECT start, COUNT(*) AS n, STDDEV(v) AS d, QUANTILE(f, 0.5) AS q FROM t WHERE b " +
				"WINDOW TUMBLING(at, SIZE 20 SEC) INTO s",
			"SELECT ts, k, v / j AS x FROM t WHERE v > 0 INTO s",
			"SELECT ts, LAG(v) OVER (PARTITION BY k) AS l FROM t WHERE j > 1 INTO s",
			"SELECT start, MAX(n) AS m FROM (SELECT start, k, COUNT(*) AS n FROM t GROUP BY k " +
				"WINDOW TUMBLING(ts, SIZE 10 SEC)) WINDOW TUMBLING(start, SIZE 60 SEC) INTO s",
		}[r.IntN(5)]
		whole, part := planned(t, query), planned(t, query)
		var want, got [][]string
		one := flow.New(whole, flow.Options{Origins: []int{2}, Now: time.Now, Out: into(&want)})
		tail := flow.New(part, flow.Options{Origins: []int{2}, Now: time.Now, Out: into(&got)})
		reader := flow.NewReader(tail, [][2]int{{0, 0}, {0, 1}})
		var heads [2]*flow.Query
		var writers [2]*flow.Writer
		for i := range heads {
			writers[i] = flow.NewWriter(reader.Read)
			heads[i] = flow.New(planned(t, query), flow.Options{Origins: []int{2}, Now: time.Now, Heads: writers[i]})
		}
		both := func(err ...error) {
			t.Helper()
			if err := errors.Join(err...); err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
		}
		for from := 0; from < len(rows); {
			n := min(1+r.IntN(200), len(rows)-from)
			f, o := &feeder{rows: rows[from : from+n]}, r.IntN(2)
			b := f.next(t, r)
			from += b.N
			if r.IntN(20) == 0 { // a source falls silent, and comes back
				both(one.Pause(0, o), heads[o].Pause(0, o), writers[o].Sync())
			}
			both(one.Push(0, o, b), heads[o].Push(0, o, b), heads[o].Flush(), writers[o].Sync())
		}
		for o := range heads {
			both(one.End(0, o), heads[o].End(0, o), writers[o].Sync())
		}
		if len(want) == 0 || !slices.EqualFunc(want, got, func(a, b []string) bool { return slices.Equal(a, b) }) {
			slices.SortFunc(want, slices.Compare[[]string])
			slices.SortFunc(got, slices.Compare[[]string])
			if what := differs(want, got); what != "" {
				t.Fatalf("%s\n%s", what, query)
			}
		}
		w, g := one.Counts(), tail.Counts()
		for _, h := range heads {
			c := h.Counts()
			g.In, g.Timeless, g.Ahead = g.In+c.In, g.Timeless+c.Timeless, g.Ahead+c.Ahead
			g.DivisionByZero, g.Overflow, g.Cast = g.DivisionByZero+c.DivisionByZero, g.Overflow+c.Overflow, g.Cast+c.Cast
			g.Latest = max(g.Latest, c.Latest)
		}
		g.Received, w.State, g.State = 0, 0, 0
		if w != g {
			t.Fatalf("in one process %+v, split %+v\n%s", w, g, query)
		}
		lates += w.Late
	}
	if lates == 0 {
		t.Error("no row was late")
	}
}

// differs says how rows of sorted lists differ; the last digits of sums depend on the order.
func differs(want, got [][]string) string {
	if len(want) != len(got) {
		return "there are other rows"
	}
	for i := range want {
		for c := range want[i] {
			if !sameValue(got[i][c], want[i][c], 1e-9) {
				return "row " + want[i][0] + " has " + got[i][c] + ", not " + want[i][c]
			}
		}
	}
	return ""
}

// FuzzFrames: whatever comes as a frame, the tail lives, and says so.
func FuzzFrames(f *testing.F) {
	const query = "SELECT start, k, COUNT(*) AS n, LAST(v) AS l, MIN(k) AS m, SUM(f) AS s, QUANTILE(d, 0.5) AS q, " +
		"STDDEV(j) AS e, MAX(b) AS b, MAX(f) AS f, AVG(v) AS a, MIN(at) AS i FROM t GROUP BY k " +
		"WINDOW TUMBLING(ts, SIZE 20 SEC) INTO s"
	bind := func() *plan.Plan {
		parsed, err := sql.Parse(query)
		if err != nil {
			f.Fatal(err)
		}
		p, err := plan.Bind(query, parsed[0].Statement.(*sql.CreateQuery).Select, schemas{"t": tColumns})
		if err != nil {
			f.Fatal(err)
		}
		return p
	}
	var frames [][]byte
	w := flow.NewWriter(func(frame []byte) error { frames = append(frames, frame); return nil })
	head := flow.New(bind(), flow.Options{Origins: []int{1}, Now: time.Now, Heads: w})
	b := &column.Batch{}
	b.Reset(tColumns)
	for _, row := range makeRows(rand.New(rand.NewPCG(1, 1)), 20) {
		for c, v := range row.values {
			if v == nil {
				b.Cols[c].AppendNull()
			} else if err := b.Cols[c].AppendParsed([]byte(*v)); err != nil {
				f.Fatal(err)
			}
		}
		b.N++
	}
	if err := errors.Join(head.Push(0, 0, b), head.End(0, 0), w.Rows(0, 0, b), w.Quiet(0, 0), w.Sync()); err != nil {
		f.Fatal(err)
	}
	for _, frame := range frames {
		f.Add(frame)
	}
	f.Add([]byte{2, 0, 0, 1, 0xff})
	f.Fuzz(func(t *testing.T, frame []byte) {
		tail := flow.New(bind(), flow.Options{Origins: []int{1}, Budget: 1 << 22, Now: time.Now,
			Out: func(*column.Batch) error { return nil }})
		r := flow.NewReader(tail, [][2]int{{0, 0}})
		_ = r.Read(frame)
		if r.Open() > 0 {
			_ = tail.End(0, 0)
		}
	})
}
