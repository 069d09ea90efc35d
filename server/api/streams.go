// This part holds the handlers of the catalog of streams: statements, and what there is.

package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Coordinator carries statements out.
type Coordinator interface {
	Execute(ctx context.Context, text string, by catalog.Author, rights coordinator.Rights) ([]catalog.Result, error)
	Watch(ctx context.Context, user string, v *watch.View, after string, tell func([]watch.Event) error) error
	Contents(ctx context.Context) (catalog.Contents, error)
	auth.ContinuousQueries
	Live() map[int64]coordinator.Live
	Output(id int64) []string
	// Alerts are the newest first.
	Alerts() []connector.Alert
	// Trouble is what the sink of a query waits for, if anything.
	Trouble(id int64) (connector.SinkProblem, bool)
}

type streamBody[T any] struct{ Body T }

// StatementsInput is one group of statements.
type StatementsInput struct {
	SQL string `json:"sql" minLength:"1" maxLength:"1000000" doc:"Statements, divided by semicolons: all of them are carried out, or none."`
	// ConfirmProduction are typed where statements write to production connections.
	ConfirmProduction auth.Names `json:"confirm_production,omitempty"`
	KeepEqual         bool       `json:"keep_equal,omitempty" doc:"Where everything is there already as the statements would make it nothing is done, in place of AlreadyExists: loadstone apply asks so."`
}

// StatementResult is what a statement gave.
type StatementResult catalog.Result

// StatementResults are what statements gave, in their order.
type StatementResults struct {
	Results []StatementResult `json:"results" nullable:"false"`
}

// StreamQuery is a continuous query.
type StreamQuery struct {
	QueryID   int64            `json:"query_id"`
	Name      string           `json:"name"`
	Statement string           `json:"statement"`
	Sink      string           `json:"sink"`
	Sources   []int64          `json:"sources" nullable:"false" doc:"The ids of the physical sources that it reads."`
	State     catalog.State    `json:"state" enum:"PENDING,DEPLOYING,RUNNING,STOPPING,STOPPING_STUCK,STOPPED,TERMINATED,TERMINATING,FAILED,SUSPENDED"`
	Desired   catalog.State    `json:"desired_state" enum:"RUNNING,STOPPED,SUSPENDED"`
	Since     engine.Time      `json:"since"`
	Failure   string           `json:"failure"`
	CreatedBy string           `json:"created_by"`
	CreatedAt engine.Time      `json:"created_at"`
	Owner     string           `json:"owner" doc:"The server that runs it."`
	Fragments []StreamFragment `json:"fragments" nullable:"false"`
	Live      *StreamCounts    `json:"live" doc:"What became of its rows, also when it has ended; null where another server runs it, or nobody has."`
	Trouble   *StreamTrouble   `json:"trouble" doc:"Why its sink takes no rows for the moment; null where it does, and where another server runs it."`
	Waiting   string           `json:"waiting" doc:"What a source of it waits for, such as a connection that is made again; empty where none does."`
	Output    []string         `json:"output" nullable:"false" doc:"Its last rows, where its sink is of the type PRINT."`
}

// StreamTrouble is what a sink waits for, which is tried again.
type StreamTrouble struct {
	Since    engine.Time `json:"since" doc:"When the first attempt has failed."`
	Attempts int         `json:"attempts" doc:"How many have failed since."`
	Message  string      `json:"message"`
}

// StreamFragment is the part of a query that a worker runs.
type StreamFragment struct {
	Host     string                `json:"host_name"`
	Plan     string                `json:"plan"`
	State    catalog.FragmentState `json:"state" enum:"REGISTERED,STARTED,RUNNING,STOPPED,TERMINATED,FAILED"`
	Attempts int64                 `json:"attempts"`
	Failure  string                `json:"failure"`
	Live     *FragmentCounts       `json:"live" doc:"Its rows; null where another server owns the query, or nobody."`
}

// FragmentCounts are the rows of a fragment; groups of partial aggregates count as rows.
type FragmentCounts struct {
	In           int64   `json:"in" doc:"Rows that it read, or was sent by other fragments."`
	Out          int64   `json:"out" doc:"Rows that it sent to another fragment, or wrote to the sink."`
	InPerSecond  float64 `json:"in_per_second"`
	OutPerSecond float64 `json:"out_per_second"`
}

// StreamCounts are what became of rows.
type StreamCounts struct {
	In             int64       `json:"in"`
	Out            int64       `json:"out"`
	InPerSecond    float64     `json:"in_per_second"`
	OutPerSecond   float64     `json:"out_per_second"`
	Late           int64       `json:"late"`
	Ahead          int64       `json:"ahead"`
	Timeless       int64       `json:"timeless"`
	Malformed      int64       `json:"malformed"`
	Dropped        int64       `json:"dropped"`
	DivisionByZero int64       `json:"division_by_zero"`
	Overflow       int64       `json:"overflow"`
	Cast           int64       `json:"cast"`
	StateBytes     int64       `json:"state_bytes"`
	LatestRow      engine.Time `json:"latest_row" doc:"The latest time that a row had; null where rows have none."`
	LagMs          *float64    `json:"lag_ms" doc:"How far that is behind the server's clock; null where rows have no time."`
	LastOut        engine.Time `json:"last_output" doc:"When rows last went to the sink, within a second."`
}

// StreamAlert is what a query had somebody told.
type StreamAlert struct {
	At      engine.Time `json:"at"`
	QueryID int64       `json:"query_id"`
	Query   string      `json:"query"`
	Type    string      `json:"type" doc:"That of the sink: GUARDRAIL or WEBHOOK."`
	RunID   string      `json:"run_id" doc:"The run that was stopped."`
	Row     string      `json:"row" doc:"The first of its rows, in words."`
	Rows    int         `json:"rows"`
	Failure string      `json:"failure" doc:"Why the webhook failed."`
}

// StreamSource is a logical source with its physical ones.
type StreamSource struct {
	Name     string         `json:"name"`
	Columns  []StreamColumn `json:"columns" nullable:"false"`
	Physical []StreamPlace  `json:"physical" nullable:"false"`
}

// StreamColumn is a column of a source or sink.
type StreamColumn struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	NotNull bool   `json:"not_null"`
}

// StreamPlace is a physical source.
type StreamPlace struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Placement string `json:"placement"`
}

// StreamSink is a sink.
type StreamSink struct {
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Placement string         `json:"placement"`
	Columns   []StreamColumn `json:"columns" nullable:"false"`
}

// StreamWorker is a worker with what it takes.
type StreamWorker struct {
	Host  string              `json:"host_name"`
	State catalog.WorkerState `json:"state" enum:"ACTIVE,DRAINING,UNREACHABLE"`
	Slots int64               `json:"slots"`
	Used  int64               `json:"used_slots"`
}

// StreamCatalog is the catalog of streams as it was at one moment.
type StreamCatalog struct {
	Queries []StreamQuery  `json:"queries" nullable:"false"`
	Sources []StreamSource `json:"sources" nullable:"false"`
	Sinks   []StreamSink   `json:"sinks" nullable:"false"`
	Workers []StreamWorker `json:"workers" nullable:"false"`
	Alerts  []StreamAlert  `json:"alerts" nullable:"false" doc:"The last 200 here, newest first."`
}

const streamTag = "Streams"

// RegisterStream adds the routes to the API.
func RegisterStream(a *API, app *fiber.App, c Coordinator, down httpx.Downloads) {
	registerWatch(a, app, c, down)
	execute := NewOperation(http.MethodPost, "/api/v1/streams/statements", "execute-stream-statements", streamTag,
		"Carry out statements of the catalog of streams", http.StatusNotFound, http.StatusConflict)
	execute.Description = "One group: all of them, or none and the error, whose field is `sql` with line and column. A " +
		"query is accepted once it has been planned; its state says what becomes of it."
	Handle(a, execute, func(ctx context.Context, in *streamBody[StatementsInput]) (*streamBody[StatementResults], error) {
		results, err := executeStatements(ctx, a, c, in.Body)
		if err != nil {
			err = coordinator.StatementError(err)
		}
		a.AuditStatements(ctx, "stream.execute", "stream.statement", auditedStatements(in.Body.SQL, results), err)
		if err != nil {
			return nil, err
		}
		out := StatementResults{Results: []StatementResult{}}
		for _, r := range results {
			out.Results = append(out.Results, StatementResult(r))
		}
		return &streamBody[StatementResults]{out}, nil
	})
	show := NewOperation(
		http.MethodGet,
		"/api/v1/streams",
		"get-streams",
		streamTag,
		"The catalog of streams, with its queries",
	)
	show.Description = "All of it as it was at one moment."
	Handle(a, show, func(ctx context.Context, _ *struct{}) (*streamBody[StreamCatalog], error) {
		contents, err := c.Contents(ctx)
		if err != nil {
			return nil, err
		}
		return &streamBody[StreamCatalog]{streamCatalogOf(contents, c)}, nil
	})
}

func streamCatalogOf(contents catalog.Contents, c Coordinator) StreamCatalog {
	all := catalog.FromContents(contents)
	s := StreamCatalog{Queries: []StreamQuery{}, Sources: []StreamSource{}, Sinks: []StreamSink{},
		Workers: []StreamWorker{}, Alerts: []StreamAlert{}}
	live, now := c.Live(), time.Now()
	for _, q := range contents.Queries {
		one := StreamQuery{QueryID: q.ID, Name: q.Name, Statement: q.Statement, Sink: q.Sink, State: q.State,
			Sources: append([]int64{}, q.Sources...), Desired: q.Desired, Since: engine.At(q.Since), Failure: q.Failure,
			CreatedBy: q.CreatedBy, CreatedAt: engine.At(q.CreatedAt), Owner: q.Owner, Fragments: []StreamFragment{},
			Output: append([]string{}, c.Output(q.ID)...)}
		l, here := live[q.ID]
		if here {
			one.Live, one.Waiting = streamCountsOf(l, now), l.Waiting
		}
		if t, waits := c.Trouble(q.ID); waits {
			one.Trouble = &StreamTrouble{engine.At(t.Since), t.Attempts, t.Message}
		}
		for _, f := range q.Fragments {
			part := StreamFragment{Host: f.Host, Plan: f.Plan, State: f.State, Attempts: f.Attempts, Failure: f.Failure}
			if p, known := l.Fragments[f.Host]; known {
				part.Live = &FragmentCounts{p.In, p.Out, p.InPerSecond, p.OutPerSecond}
			}
			one.Fragments = append(one.Fragments, part)
		}
		s.Queries = append(s.Queries, one)
	}
	for _, l := range contents.Logical {
		one := StreamSource{Name: l.Name, Columns: []StreamColumn{}, Physical: []StreamPlace{}}
		for _, col := range l.Columns {
			one.Columns = append(one.Columns, StreamColumn{col.Name, col.Type.String(), col.NotNull})
		}
		for _, p := range all.Physical(l.Name) {
			one.Physical = append(one.Physical, StreamPlace{p.ID, p.Type, p.Placement})
		}
		s.Sources = append(s.Sources, one)
	}
	for _, k := range contents.Sinks {
		one := StreamSink{Name: k.Name, Type: k.Type, Placement: k.Placement, Columns: []StreamColumn{}}
		for _, col := range k.Columns {
			one.Columns = append(one.Columns, StreamColumn{col.Name, col.Type.String(), col.NotNull})
		}
		s.Sinks = append(s.Sinks, one)
	}
	for _, w := range contents.Workers {
		s.Workers = append(s.Workers, StreamWorker{w.Host, w.State, w.Slots, all.Used(w.Host)})
	}
	for _, a := range c.Alerts() {
		s.Alerts = append(s.Alerts, StreamAlert{engine.At(a.At), a.QueryID, a.Query, a.Type, a.RunID, a.Row, a.Rows,
			a.Failure})
	}
	return s
}

func streamCountsOf(l coordinator.Live, now time.Time) *StreamCounts {
	c := &StreamCounts{In: l.In, Out: l.Out, InPerSecond: l.InPerSecond, OutPerSecond: l.OutPerSecond, Late: l.Late,
		Ahead: l.Ahead, Timeless: l.Timeless, Malformed: l.Malformed, Dropped: l.Dropped,
		DivisionByZero: l.DivisionByZero, Overflow: l.Overflow, Cast: l.Cast, StateBytes: int64(l.State),
		LatestRow: engine.At(l.LatestRow), LastOut: engine.At(l.LastOut)}
	if !l.LatestRow.IsZero() {
		lag := max(float64(now.Sub(l.LatestRow).Microseconds())/1000, 0)
		c.LagMs = &lag
	}
	return c
}
