package fragment_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// generated gives the same rows again and again, later each time, until there were enough.
type generated struct {
	all        []*column.Batch
	next, left int
}

const size = 1024

func (g *generated) Read(b *column.Batch) error {
	if g.left <= 0 {
		return io.EOF
	}
	from := g.all[g.next%len(g.all)]
	round := int64(g.next/len(g.all)) * int64(len(g.all)) * size * 10
	b.Cols = append(b.Cols[:0], from.Cols...)
	b.N = from.N
	times := make([]int64, b.N)
	for i, t := range from.Cols[0].Ints {
		times[i] = t + round
	}
	b.Cols[0].Ints = times
	g.next++
	g.left -= b.N
	return nil
}

func (g *generated) Malformed() int64 { return 0 }
func (g *generated) Close() error     { return nil }

// feeds give generated rows to whoever opens a source.
type feeds struct{ rows int }

func (f feeds) Source(_ context.Context, _ catalog.PhysicalSource, columns []column.Column) (connector.Source, error) {
	r := rand.New(rand.NewPCG(1, 1))
	g := &generated{left: f.rows}
	for i := range 64 {
		b := &column.Batch{}
		b.Reset(columns)
		b.N = size
		for j := range size {
			b.Cols[0].AppendInt(int64(i*size+j) * 10)
			b.Cols[1].AppendText(fmt.Appendf(nil, "worker-%d", r.IntN(8)))
			b.Cols[2].AppendInt(100 + r.Int64N(100_000))
			b.Cols[3].AppendBool(r.IntN(100) > 0)
		}
		g.all = append(g.all, b)
	}
	return g, nil
}

func (f feeds) Sink(context.Context, catalog.Query, catalog.Sink, []column.Column) (connector.Sink, error) {
	return nil, fragment.ErrUnusable
}

// BenchmarkOverTheWire: an operation is a row, from the source of a node through its head, over gRPC on loopback, to
// the tail; and the same in one process, in one goroutine.
func BenchmarkOverTheWire(b *testing.B) {
	for name, query := range map[string]string{
		"PartialAggregate": "SELECT start, w, COUNT(*) AS n, SUM(ms) AS s, MAX(ms) AS m " +
			"FROM (SELECT ts, w, us / 1000.0 AS ms FROM t WHERE ok AND us > 1000) GROUP BY w " +
			"WINDOW TUMBLING(ts, SIZE 1 SEC) INTO s",
		"Rows": "SELECT ts, w, us / 1000.0 AS ms FROM t WHERE ok AND us > 1000 INTO s",
	} {
		b.Run(name+"/wire", func(b *testing.B) { over(b, query, false) })
		b.Run(name+"/one process", func(b *testing.B) { over(b, query, true) })
	}
}

func over(b *testing.B, query string, here bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	host := fragment.NewHost(feeds{b.N}, memory.Limits{}, zerolog.Nop())
	listener, err := rpc.Listen(ctx, rpc.ListenOptions{Address: "127.0.0.1:0", Fragments: host,
		Log: zerolog.Nop()})
	must(b, err)
	defer func() { _ = listener.Close() }()
	go func() { _, _ = listener.Accept(ctx) }()
	dialer, err := rpc.NewDialer(rpc.DialOptions{Address: listener.Addr().String(), Process: "p"})
	must(b, err)
	defer func() { _ = dialer.Close() }()
	end, err := dialer.Dial(ctx)
	must(b, err)

	c := &catalog.Catalog{}
	c.SetDefaultHost(catalog.Server, 10)
	all := c.Contents()
	all.Workers = append(all.Workers, catalog.Worker{Host: "n", Slots: 1, State: catalog.Active})
	c = catalog.FromContents(all)
	c.SetDefaultHost(catalog.Server, 10)
	text := "CREATE LOGICAL SOURCE t(ts TIMESTAMP, w TEXT, us INT64, ok BOOLEAN);" +
		"CREATE PHYSICAL SOURCE FOR t TYPE FILE ON n SET('x' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);" +
		"CREATE SINK s TYPE PRINT;" + query
	parsed, err := sql.Parse(text)
	must(b, err)
	must(b, c.CreateLogicalSource(text, parsed[0].Statement.(*sql.CreateLogicalSource)))
	_, err = c.CreatePhysicalSource(text, parsed[1].Statement.(*sql.CreatePhysicalSource))
	must(b, err)
	must(b, c.CreateSink(text, parsed[2].Statement.(*sql.CreateSink)))
	_, _, err = c.CreateQuery(text, parsed[3].Statement.(*sql.CreateQuery))
	must(b, err)
	q := c.Contents().Queries[0]
	bound, err := fragment.Plan(c.Contents(), q, 1)
	must(b, err)
	given, bytes := 0, 0
	tail := flow.New(bound.Plan, flow.Options{Origins: []int{1}, Now: time.Now, Out: func(o *column.Batch) error {
		given += o.N
		return nil
	}})
	if here {
		source, err := feeds{b.N}.Source(ctx, catalog.PhysicalSource{}, bound.Plan.Scans[0].Columns)
		must(b, err)
		b.ResetTimer()
		for batch := (&column.Batch{}); source.Read(batch) == nil; {
			must(b, tail.Push(0, 0, batch))
		}
		must(b, tail.End(0, 0))
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		return
	}
	reader := flow.NewReader(tail, [][2]int{{0, 0}})
	doc, err := bound.On("n").Marshal()
	must(b, err)
	link, err := end.(protocol.FragmentRunner).RunFragment(ctx, bound.Key, doc)
	must(b, err)
	defer func() { _ = link.Close() }()
	w, err := link.Receive(ctx)
	must(b, err)
	if w.Kind != fragment.Ready {
		b.Fatalf("%d %s", w.Kind, w.Body)
	}
	b.ResetTimer()
	must(b, link.Send(ctx, fragment.Message{Kind: fragment.Go}))
	for reader.Open() > 0 {
		w, err := link.Receive(ctx)
		must(b, err)
		switch w.Kind {
		case fragment.Frame:
			bytes += len(w.Body)
			must(b, reader.Read(w.Body))
		case fragment.End:
			b.Fatalf("%s", w.Body)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
	b.ReportMetric(float64(bytes)/float64(b.N), "B/row")
	if given == 0 {
		b.Fatal("nothing was given")
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
