package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
)

// prepared is one frozen statement as this connection's server knows it.
type prepared struct {
	// parse goes before the Bind message: where sessions are not the connection's own
	// the statement is sent with each operation, and one whose table was altered is prepared again.
	parse []byte
	// head is the Bind message up to the number of parameter formats; its length field is patched.
	head  []byte
	forms []wire.Form
	// params are the types of the parameters.
	params []uint32
	// fields are the columns of the result.
	fields []wire.Field
	// order maps SQL parameter i to the operation's argument.
	order []int
	// tail holds the result format, Execute and Sync; keepTail those of an
	// operation whose row is kept.
	tail, keepTail []byte
	// pieces is the text of a statement whose values are written into it, since the protocol has no parameters for
	// them: EXECUTE. Argument order[i] follows piece i.
	pieces []string
	// copied is how many fields each row of a COPY FROM STDIN has, whose rows are the arguments; 0 for others.
	copied int
}

// conn is one load connection.
//
// What every operation looks at comes first, and together: with thousands of
// connections each of those parts of memory has left the processor's cache by the next.
type conn struct {
	kept wire.RowCache
	// loop is set while an event loop has the socket.
	loop  socket
	stmts []prepared
	op    plugin.Op // in flight there
	begun uint64    // its flight
	// flight is odd while a round trip is under way and rises by one at its
	// beginning and its end, so that the watchdog can tell how long one has lasted.
	flight atomic.Uint64
	// cancelling is the flight that the watchdog is cancelling; 0 for none.
	cancelling atomic.Uint64
	broken     atomic.Bool
	closed     atomic.Bool
	answer     wire.Answer

	out      []byte
	db       *database
	net      net.Conn
	taken    *pgconn.HijackedConn
	link     wire.Link
	timeout  time.Duration
	cancelMu sync.Mutex

	// statements are the frozen ones; renewed are those that were prepared again,
	// nil as long as none was.
	statements []engine.Statement
	renewed    map[uint16]bool
	// unnamed: statements are not kept by the session.
	unnamed bool
}

// Connect opens a load connection. Its errors are user-facing: they name the
// statement that could not be prepared, or why there is no connection.
func (d *database) Connect(ctx context.Context, statements []engine.Statement) (target.Conn, error) {
	pg, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(d.answer, time.Second))
	defer cancel()
	c := &conn{db: d, timeout: d.cfg.StatementTimeout, statements: statements, out: make([]byte, 0, 1024)}
	c.answer.TxStatus = stateIdle
	if c.unnamed, err = d.unnamed(ctx, pg); err != nil {
		closeQuietly(pg)
		return nil, err
	}
	if err := c.setUp(ctx, pg); err != nil {
		closeQuietly(pg)
		return nil, err
	}
	stmts := make([]prepared, len(statements))
	for i, s := range statements {
		name := statementName(i)
		if c.unnamed {
			name = ""
		}
		if stmts[i], err = prepare(ctx, pg, name, s); err != nil {
			if ctx.Err() != nil {
				if locked := d.locked(s.SQL); locked != nil {
					err = locked
				}
			}
			closeQuietly(pg)
			return nil, err
		}
	}
	c.stmts = d.share(stmts)
	if pg.TxStatus() != stateIdle {
		// Pgpool in raw mode begins a transaction of its own when a statement is prepared, and does not end it.
		if err := execAll(ctx, pg, "ROLLBACK"); err != nil {
			closeQuietly(pg)
			return nil, d.explain(err, d.answer)
		}
	}
	if err := pg.SyncConn(ctx); err != nil {
		closeQuietly(pg)
		return nil, d.explain(err, d.answer)
	}
	if c.taken, err = pg.Hijack(); err != nil {
		closeQuietly(pg)
		return nil, fmt.Errorf("taking over the connection: %w", err)
	}
	c.net = c.taken.Conn
	if err := c.net.SetDeadline(time.Time{}); err != nil {
		_ = c.net.Close()
		return nil, d.explain(err, d.answer)
	}
	c.link = wire.NewLink(c.net)
	if c.timeout > 0 {
		d.watchdog.watch(c)
	}
	return c, nil
}

func statementName(i int) string { return "ls" + strconv.Itoa(i) }

// prepare prepares a statement. Without a name it is only described, and sent with
// each operation: with its types, so that the server reads values as they are written here.
func prepare(ctx context.Context, pg *pgconn.PgConn, name string, s engine.Statement) (prepared, error) {
	refuse := func(cause error, format string, args ...any) (prepared, error) {
		return prepared{}, &engine.Error{Code: engine.CodeTarget, Cause: cause,
			Message: fmt.Sprintf("Statement %s cannot be prepared: ", s.ID) + fmt.Sprintf(format, args...) + ".",
			Hint:    caretText(s.SQL, cause)}
	}
	s.SQL = executed(s.SQL)
	pieces, order, err := writtenText(s)
	if err != nil {
		return refuse(nil, "%v", err)
	}
	if pieces != nil {
		name = "" // it is another text each time
	}
	description, err := pg.Prepare(ctx, name, s.SQL, nil)
	if err != nil {
		if known := explained(err); known != nil {
			return prepared{}, known
		}
		return refuse(err, "%s", sentence(err))
	}
	if len(description.ParamOIDs) > math.MaxUint16 {
		return refuse(nil, "it has %d parameters", len(description.ParamOIDs))
	}
	p := prepared{forms: make([]wire.Form, len(description.ParamOIDs)), params: description.ParamOIDs}
	for i, oid := range description.ParamOIDs {
		p.forms[i] = wire.FormOf(oid)
	}
	if p.order, err = argumentOrder(len(p.forms), s); err != nil {
		return refuse(nil, "%v", err)
	}
	if pieces != nil {
		p.pieces, p.order, p.forms = pieces, order, nil
	}
	if p.copied, err = copiedFields(s); err != nil {
		return refuse(nil, "%v", err)
	}
	p.head = wire.BindHead(name, len(p.forms))
	if name == "" && pieces == nil {
		p.parse = wire.ParseMessage("", s.SQL, description.ParamOIDs)
	}
	result := byte(wire.BinaryFormat)
	for _, f := range description.Fields {
		if !wire.BinaryResult(f.DataTypeOID) {
			result = wire.TextFormat
		}
	}
	p.tail = append([]byte{0, 1, 0, result}, wire.ExecuteAndSync...)
	p.keepTail = binary.BigEndian.AppendUint16(p.keepTail, uint16(len(description.Fields)))
	for _, f := range description.Fields {
		binary := wire.FormOf(f.DataTypeOID) != wire.FormText
		p.fields = append(p.fields, wire.Field{OID: f.DataTypeOID, Binary: binary})
		format := byte(wire.TextFormat)
		if binary {
			format = wire.BinaryFormat
		}
		p.keepTail = append(p.keepTail, 0, format)
	}
	p.keepTail = append(p.keepTail, wire.ExecuteAndSync...)
	if len(description.Fields) > 0 && len(description.Fields) < len(s.Columns) {
		return refuse(nil, "it declares %d columns and returns %d", len(s.Columns), len(description.Fields))
	}
	return p, nil
}

// argumentOrder maps the parameters of a statement to its binds.
func argumentOrder(parameters int, s engine.Statement) ([]int, error) {
	order := make([]int, parameters)
	for i := range order {
		order[i] = i
		if s.BindOrder != nil {
			if i >= len(s.BindOrder) {
				return nil, fmt.Errorf("its bind order lacks parameter $%d", i+1)
			}
			order[i] = s.BindOrder[i]
		}
		if order[i] < 0 || order[i] >= len(s.Binds) {
			return nil, fmt.Errorf("it has %d parameters and %d binds", parameters, len(s.Binds))
		}
	}
	return order, nil
}

// share returns the statements of an earlier connection where they are the same,
// as they are unless a table has changed meanwhile: thousands of connections then
// read one copy, which stays in the processor's cache.
func (d *database) share(p []prepared) []prepared {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.EqualFunc(d.prepared, p, prepared.equal) {
		d.prepared = p
	}
	return d.prepared
}

func (p prepared) equal(q prepared) bool {
	return slices.Equal(p.parse, q.parse) && slices.Equal(p.head, q.head) && slices.Equal(p.forms, q.forms) &&
		slices.Equal(p.params, q.params) && slices.Equal(p.fields, q.fields) &&
		slices.Equal(p.order, q.order) && slices.Equal(p.tail, q.tail) && slices.Equal(p.keepTail, q.keepTail) &&
		slices.Equal(p.pieces, q.pieces) && p.copied == q.copied
}

// Exec runs one operation. It does not look at ctx: the statement timeout and
// Cancel bound it, and Close from another goroutine ends it.
func (c *conn) Exec(_ context.Context, b *plugin.Batch, op plugin.Op, res *target.Result) error {
	*res = target.Result{}
	if c.broken.Load() {
		return net.ErrClosed
	}
	request, err := c.request(c.out, b, op)
	if err != nil {
		return err
	}
	c.keep(request, op)
	c.answer.Reset()
	c.answer.KeepRow, c.answer.RowsSent = op.Referred, c.sendsRows(op)
	c.answer.FirstByte = time.Time{}
	flight := c.flight.Add(1)
	err = c.link.RoundTrip(request, &c.answer)
	res.FirstByte = c.answer.FirstByte
	return c.ended(op, flight, err, res)
}

// ended finishes a round trip: err is the wire's, everything else is in the answer.
func (c *conn) ended(op plugin.Op, flight uint64, err error, res *target.Result) error {
	c.flight.Store(flight + 1)
	if err == nil && c.answer.Err == nil && c.answer.Broken == nil && c.cancelling.Load() != flight {
		res.Rows = int32(min(c.answer.Rows, math.MaxInt32))
	} else if err = c.failed(err, flight, res); err != nil {
		c.failedOf(op, err)
		if c.answer.Done && c.answer.TxStatus == stateIdle {
			c.kept.End() // a COMMIT that fails, a PREPARE TRANSACTION that does: the transaction is over
		}
		return err
	}
	if err := c.state(op); err != nil {
		c.kill()
		return err
	}
	if c.renewed != nil {
		c.settled(op)
	}
	if c.kept.Inside || op.Statement == plugin.StatementBegin {
		return c.follow(op)
	}
	return nil
}

// errNotCommitted is the answer to a COMMIT of a transaction that the server had given up before.
var errNotCommitted = &pgconn.PgError{Severity: "ERROR", Code: "25P02",
	Message: "the server answered COMMIT with ROLLBACK: the transaction had failed before"}

// errCopyIn is the answer to a statement that waits for rows.
var errCopyIn = &pgconn.PgError{Severity: "ERROR", Code: "0A000",
	Message: "COPY FROM STDIN waits for rows, and a statement of a run sends none"}

// follow notes where the transaction stands after an operation that succeeded.
func (c *conn) follow(op plugin.Op) error {
	switch op.Statement {
	case plugin.StatementBegin:
		c.kept.Begin()
	case plugin.StatementRollback:
		c.kept.End()
	case plugin.StatementCommit:
		c.kept.End()
		if c.answer.RolledBack {
			return errNotCommitted
		}
	default:
		c.kept.Add(c.stmts[op.Statement].fields, c.answer.Row, c.answer.Long)
	}
	return nil
}

// failed finishes a round trip that did not simply succeed.
func (c *conn) failed(err error, flight uint64, res *target.Result) error {
	timedOut := false
	if c.cancelling.Load() == flight {
		// The watchdog's request is on its way: a later operation must not be hit by it.
		c.cancelMu.Lock()
		timedOut = true
		c.cancelMu.Unlock()
	}
	switch {
	case err != nil:
		c.kill()
		if timedOut {
			return noAnswerError{&timeoutError{after: c.timeout}}
		}
		if c.answer.Err != nil {
			return answered(c.answer.Err) // the server said why before it hung up
		}
		if target.WasNotSent(err) {
			return err
		}
		return noAnswerError{err}
	case c.answer.Broken != nil:
		c.kill()
		return noAnswerError{c.answer.Broken}
	case c.answer.CopyRefused:
		return errCopyIn
	case c.answer.Err != nil:
		if wire.Fatal(c.answer.Err) {
			c.kill()
		}
		if timedOut && c.answer.Err.Code == "57014" {
			return &timeoutError{after: c.timeout, confirmed: true}
		}
		return answered(c.answer.Err)
	}
	// It succeeded while the cancellation was under way.
	res.Rows = int32(min(c.answer.Rows, math.MaxInt32))
	return nil
}

// request encodes the operation into buf, or into more memory where that has not enough room.
func (c *conn) request(buf []byte, b *plugin.Batch, op plugin.Op) ([]byte, error) {
	switch op.Statement {
	case plugin.StatementBegin:
		return wire.BeginMessage, nil
	case plugin.StatementCommit:
		return wire.CommitMessage, nil
	case plugin.StatementRollback:
		return wire.RollbackMessage, nil
	}
	if int(op.Statement) >= len(c.stmts) {
		return nil, fmt.Errorf("operation names statement %d of %d", op.Statement, len(c.stmts))
	}
	p := &c.stmts[op.Statement]
	args := b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)]
	out := append(buf[:0], p.parse...)
	if p.pieces != nil {
		var err error
		if out, err = c.parseWritten(out, p, b, args); err != nil {
			return nil, err
		}
	}
	bindAt := len(out)
	out = append(out, p.head...)
	formats := len(out)
	for range p.forms {
		out = append(out, 0, 0)
	}
	out = binary.BigEndian.AppendUint16(out, uint16(len(p.forms)))
	for i, f := range p.forms {
		at := p.order[i]
		if at >= len(args) {
			return nil, fmt.Errorf("operation has %d arguments, statement %d needs more", len(args), op.Statement)
		}
		var format byte
		if v := args[at]; v.Type != plugin.TypeRef {
			out, format = wire.AppendValue(out, b, v, f)
		} else {
			var err error
			if out, format, err = c.kept.AppendRef(out, v, p.params[i]); err != nil {
				return nil, err
			}
		}
		out[formats+2*i+1] = format
	}
	tail := p.tail
	if op.Referred {
		tail = p.keepTail
	}
	bindEnd := len(out) + len(tail) - len(wire.ExecuteAndSync)
	out = append(out, tail...)
	if p.copied > 0 {
		var err error
		if out, err = c.appendRows(out, p, b, args); err != nil {
			return nil, err
		}
	}
	if len(out) > wire.MaxMessage {
		return nil, errors.New("operation is larger than 1 GB")
	}
	binary.BigEndian.PutUint32(out[bindAt+1:], uint32(bindEnd-bindAt-1))
	return out, nil
}

// keep keeps the memory of a request for the next one.
func (c *conn) keep(request []byte, op plugin.Op) {
	if cap(request) > cap(c.out) && op.Statement < plugin.StatementBegin { // the others are shared texts
		c.out = request
	}
}

// Broken reports that the connection cannot be used any more.
func (c *conn) Broken() bool { return c.broken.Load() }

// Cancel asks the server to cancel the running statement, over a connection of its own.
func (c *conn) Cancel(ctx context.Context) error {
	c.cancelMu.Lock()
	defer c.cancelMu.Unlock()
	return c.cancelRequest(ctx)
}

func (c *conn) cancelRequest(ctx context.Context) error {
	if c.closed.Load() || c.flight.Load()&1 == 0 {
		return nil
	}
	// Construct gives an object that knows how to send the request in the same
	// way (TLS or not) to the same server; it does not touch this connection.
	again, err := pgconn.Construct(&pgconn.HijackedConn{
		Conn: c.net, TLSConfig: c.taken.TLSConfig, PID: c.taken.PID, SecretKey: c.taken.SecretKey,
		ParameterStatuses: c.taken.ParameterStatuses, TxStatus: 'I', Frontend: c.taken.Frontend, Config: c.taken.Config,
	})
	if err != nil {
		return fmt.Errorf("cancelling: %w", err)
	}
	if err := again.CancelRequest(ctx); err != nil {
		return fmt.Errorf("cancelling: %w", err)
	}
	return nil
}

// kill marks the connection as unusable and closes its socket.
func (c *conn) kill() {
	c.broken.Store(true)
	c.hangUp()
}

// hangUp ends the stream in both directions; whoever waits for it is woken.
func (c *conn) hangUp() {
	if !c.loop.shutdown() {
		_ = c.net.Close()
	}
}

// Close ends the session. From another goroutine it also ends an Exec under
// way, which then returns an error. Closing twice is safe.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	if c.timeout > 0 {
		c.db.watchdog.forget(c)
	}
	if !c.broken.Swap(true) && c.flight.Load()&1 == 0 {
		// It lets the server end the session without a line in its log.
		if !c.loop.tryWrite(wire.Terminate) {
			_ = c.net.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = c.net.Write(wire.Terminate)
		}
	}
	c.hangUp()
	return nil
}
