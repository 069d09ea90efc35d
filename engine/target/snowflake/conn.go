package snowflake

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// fetchConcurrency is how many parts of a large result a connection fetches at a time.
const fetchConcurrency = 4

// fileTransfer finds what gosnowflake would carry out itself, on files of this
// machine. It finds more than gosnowflake does: comments of either kind may precede.
var fileTransfer = regexp.MustCompile(`(?is)^(?:\s|;|--[^\n]*\n|//[^\n]*\n|/\*.*?\*/|/\*.*\*/)*(?:put|get)\s`)

func transfersFiles(sql string) bool { return fileTransfer.MatchString(sql) }

var errFileTransfer = &engine.Error{Code: engine.CodeTarget,
	Message: "PUT and GET are not possible: they would read and write files of the machine that Loadstone runs on.",
	Hint:    "Stage files with another tool, and load them with COPY INTO."}

// statement is a frozen statement as Exec needs it.
type statement struct {
	sql    string
	writes bool
	binds  int
	order  []int
}

// description is what the account says of a statement.
type description struct {
	columns int
	err     error
}

// conn is one load connection.
type conn struct {
	db      *database
	sf      session
	stmts   []statement
	args    []driver.NamedValue
	kept    rowCache
	timeout time.Duration

	mu     sync.Mutex
	end    context.CancelCauseFunc // of the operation in flight, nil for none
	broken bool
	closed bool
	left   bool // the session is closed, or about to be
}

// The causes for which an operation is ended from here.
var (
	errCancelled = errors.New("the operation was cancelled")
	errTimeout   = errors.New("the statement timeout")
)

// Connect opens a load connection. Its errors are user-facing: they name the
// statement that the account refuses, or why there is no connection.
func (d *database) Connect(ctx context.Context, statements []engine.Statement) (target.Conn, error) {
	c, err := d.connect(ctx, statements)
	if sessionEnded(err) { // nothing has been done in it
		c, err = d.connect(ctx, statements)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d *database) connect(ctx context.Context, statements []engine.Statement) (*conn, error) {
	s, err := d.dial(ctx, 0)
	if err != nil {
		return nil, err
	}
	c := &conn{db: d, sf: s, timeout: d.cfg.StatementTimeout, stmts: make([]statement, len(statements))}
	describing, cancel := context.WithTimeout(ctx, d.cfg.ConnectTimeout)
	defer cancel()
	for i := range statements {
		if c.stmts[i], err = d.prepare(describing, s, &statements[i]); err != nil {
			d.hangUp(s)
			return nil, err
		}
	}
	return c, nil
}

// prepare checks a statement. Snowflake prepares nothing on its side: the account
// is asked to describe each text once for all connections.
func (d *database) prepare(ctx context.Context, s session, from *engine.Statement) (statement, error) {
	refuse := func(cause error, format string, args ...any) (statement, error) {
		hint := "The statement is: " + shortStatement(from.SQL)
		if e := (*sf.SnowflakeError)(nil); errors.As(cause, &e) && e.Number == numberPrivileges {
			hint = d.grantHint(from.SQL)
		}
		return statement{}, &engine.Error{Code: engine.CodeTarget, Cause: cause,
			Message: fmt.Sprintf("Statement %s cannot be prepared: ", from.ID) + fmt.Sprintf(format, args...), Hint: hint}
	}
	if transfersFiles(from.SQL) {
		return statement{}, errFileTransfer
	}
	p := statement{sql: from.SQL, writes: from.Writes, binds: len(from.Binds), order: from.BindOrder}
	for _, at := range p.order {
		if at < 0 || at >= p.binds {
			return refuse(nil, "its bind order names bind %d of %d.", at, p.binds)
		}
	}
	described, err := d.describe(ctx, s, from.SQL)
	if err != nil {
		return statement{}, d.explain(err)
	}
	if described.err != nil {
		return refuse(described.err, "%s", sentence(described.err))
	}
	if described.columns > 0 && !p.writes && described.columns < len(from.Columns) {
		return refuse(nil, "it declares %d columns and returns %d.", len(from.Columns), described.columns)
	}
	return p, nil
}

// describe asks the account once for each text. The error is the network's;
// the account's own is in the description, when an execution would meet it too.
func (d *database) describe(ctx context.Context, s session, sql string) (*description, error) {
	d.describing.Lock()
	defer d.describing.Unlock()
	if known := d.described[sql]; known != nil {
		return known, nil
	}
	result := &description{}
	rows, err := s.QueryContext(sf.WithDescribeOnly(ctx), sql, nil)
	var refused *sf.SnowflakeError
	switch {
	case err == nil:
		result.columns = len(rows.Columns())
		_ = rows.Close() // nothing was fetched
	case errors.As(err, &refused) && refused.SQLState != "" && refused.Number < 260000:
		// Snowflake cannot describe every statement that it can execute; what it
		// cannot resolve without values is left to the execution.
		if certain(refused) {
			result.err = err
		}
	default:
		return nil, err
	}
	d.described[sql] = result
	return result, nil
}

// begin starts an operation: its context ends with the statement timeout, Cancel or Close.
func (c *conn) begin() (context.Context, context.CancelCauseFunc, *time.Timer, error) {
	ctx, end := context.WithCancelCause(context.Background())
	c.mu.Lock()
	if c.broken || c.closed {
		c.mu.Unlock()
		end(nil)
		return nil, nil, nil, net.ErrClosed
	}
	c.end = end
	c.mu.Unlock()
	if c.timeout <= 0 {
		return ctx, end, nil, nil
	}
	return ctx, end, time.AfterFunc(c.timeout, func() { end(errTimeout) }), nil
}

// Exec runs one operation. It does not look at ctx: the statement timeout and
// Cancel bound it, and Close from another goroutine ends it.
func (c *conn) Exec(_ context.Context, b *plugin.Batch, op plugin.Op, res *target.Result) error {
	*res = target.Result{}
	ctx, end, timer, err := c.begin()
	if err != nil {
		return err
	}
	// The account's name for the query is there as soon as it has one, also for a query that fails.
	id := make(chan string, 1)
	row, err := c.run(ctx, sf.WithQueryIDChan(context.WithValue(ctx, answeredKey{}, &res.FirstByte), id), b, op, res)
	if timer != nil {
		timer.Stop()
	}
	select {
	case text := <-id:
		res.QueryID, _ = engine.ParseQueryID(text) // an id of another shape cannot be kept
	default:
	}
	err = c.ended(ctx, err)
	end(nil)
	if err != nil {
		res.Rows = 0
		return err
	}
	c.follow(op, row)
	return nil
}

// follow notes where the transaction stands after an operation that succeeded.
func (c *conn) follow(op plugin.Op, row cachedRow) {
	switch {
	case op.Statement == plugin.StatementBegin:
		c.kept.begin()
	case op.Statement >= plugin.StatementBegin:
		c.kept.end()
	case c.kept.inside:
		c.kept.add(row)
	}
}

// run executes the operation. plain is ctx without the query id's channel.
func (c *conn) run(plain, ctx context.Context, b *plugin.Batch, op plugin.Op, res *target.Result) (row cachedRow,
	err error) {
	switch op.Statement {
	case plugin.StatementBegin:
		_, err = c.sf.ExecContext(ctx, "BEGIN", nil)
		return row, err
	case plugin.StatementCommit:
		_, err = c.sf.ExecContext(ctx, "COMMIT", nil)
		return row, err
	case plugin.StatementRollback:
		_, err = c.sf.ExecContext(ctx, "ROLLBACK", nil)
		return row, err
	}
	if int(op.Statement) >= len(c.stmts) {
		return row, fmt.Errorf("operation names statement %d of %d", op.Statement, len(c.stmts))
	}
	s := &c.stmts[op.Statement]
	args, err := c.bind(s, b, op)
	if err != nil {
		return row, err
	}
	var rows int64
	switch {
	case s.writes:
		var r driver.Result
		if r, err = c.sf.ExecContext(ctx, s.sql, args); err == nil && r != driver.ResultNoRows {
			rows, err = r.RowsAffected()
		}
	case op.Referred:
		var r driver.Rows
		if r, err = c.sf.QueryContext(ctx, s.sql, args); err == nil {
			row, rows, err = readCached(r)
			_ = r.Close() // it has been read
		}
	default:
		var l sf.ArrowStreamLoader
		if l, err = c.sf.QueryArrowStream(ctx, s.sql, args...); err == nil {
			rows = l.TotalRows()
			err = drain(plain, l)
		}
	}
	res.Rows = int32(min(rows, math.MaxInt32))
	return row, err
}

func (c *conn) bind(s *statement, b *plugin.Batch, op plugin.Op) ([]driver.NamedValue, error) {
	args := b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)]
	out, mode := c.args[:0], bindMode{}
	n := s.binds
	if s.order != nil {
		n = len(s.order)
	}
	for i := range n {
		at := i
		if s.order != nil {
			at = s.order[i]
		}
		if at >= len(args) {
			return nil, fmt.Errorf("operation has %d arguments, statement %d needs more", len(args), op.Statement)
		}
		var err error
		if v := args[at]; v.Type != plugin.TypeRef {
			out, err = mode.appendValue(out, b, v)
		} else {
			var kept any
			if kept, err = c.kept.value(v.Ref()); err == nil {
				out, err = mode.appendArgument(out, kept)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	c.args = out
	return out, nil
}

// drain fetches what a result has besides the part that came with its answer, as
// any client would have to, and throws it away.
func drain(ctx context.Context, l sf.ArrowStreamLoader) error {
	if int64(len(l.JSONData())) == l.TotalRows() {
		return nil
	}
	batches, err := l.GetBatches()
	if err != nil {
		return err
	}
	if len(batches) == 1 {
		return fetch(ctx, &batches[0])
	}
	next := make(chan *sf.ArrowStreamBatch)
	failed := make(chan error, fetchConcurrency)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range min(fetchConcurrency, len(batches)) {
		wg.Go(func() {
			for batch := range next {
				if err := fetch(ctx, batch); err != nil {
					cancel()
					failed <- err
					return
				}
			}
		})
	}
feed:
	for i := range batches {
		select {
		case next <- &batches[i]:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return ctx.Err()
	}
}

func fetch(ctx context.Context, batch *sf.ArrowStreamBatch) error {
	body, err := batch.GetStream(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// ended finishes an operation: it words why it failed, and notes whether the connection survived it.
func (c *conn) ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = nil
	if err != nil && cause != nil && errors.Is(err, context.Canceled) {
		// gosnowflake has sent an abort-request, and says so when that failed.
		switch stillRuns := strings.Contains(err.Error(), "failed to cancel query"); {
		case c.closed:
			c.broken, err = true, net.ErrClosed
		case errors.Is(cause, errTimeout):
			c.broken = c.broken || stillRuns
			err = &timeoutError{after: c.timeout, answered: !stillRuns}
		default:
			c.broken = c.broken || stillRuns
			err = &cancelledError{}
		}
	} else if breaksSession(err) {
		c.broken = true
	}
	if c.closed {
		c.leave()
	}
	return err
}

// leave closes the session in the background: its time is not the operation's. It needs mu.
func (c *conn) leave() {
	if c.left {
		return
	}
	c.left = true
	c.db.leave(c.sf)
}

// Broken reports that the connection cannot be used any more.
func (c *conn) Broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken || c.closed
}

// Cancel ends the operation in flight, if there is one: an abort-request is sent for it.
func (c *conn) Cancel(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.end(errCancelled)
	}
	return nil
}

// Close ends the session, and the operation in flight with it.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.end != nil {
		c.end(net.ErrClosed) // the operation's end closes the session
		return nil
	}
	c.leave()
	return nil
}
