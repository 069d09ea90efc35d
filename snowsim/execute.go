package snowsim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// run executes a job's statements and sets its answer.
func (j *job) run() {
	defer j.finish()
	sess := j.session
	sess.statementMu.Lock()
	defer sess.statementMu.Unlock()
	defer func() {
		sess.mu.Lock()
		sess.used = time.Now()
		sess.mu.Unlock()
	}()
	view := sess.view()
	statements, err := j.server.translator.Split(j.req.SQL)
	if err != nil {
		j.fail(explain(err))
		return
	}
	if len(statements) == 0 {
		j.fail(&protocol.Error{Code: "000900", State: "42601", Message: "Empty SQL statement."})
		return
	}
	count := view.Parameters["MULTI_STATEMENT_COUNT"]
	if v, set := j.req.Parameters["MULTI_STATEMENT_COUNT"]; set {
		count = fmt.Sprint(v)
	}
	if count == "" {
		count = "1"
	}
	switch {
	case count != "0" && count != strconv.Itoa(len(statements)):
		j.fail(
			&protocol.Error{Code: "000008", State: "0A000", Message: fmt.Sprintf("Actual statement count %d did not match "+
				"the desired statement count %s.", len(statements), count)},
		)
		return
	case len(statements) > 1:
		j.fail(protocol.NotSimulated("several statements in one request"))
		return
	case j.req.Async:
		j.fail(protocol.NotSimulated("an asynchronous statement"))
		return
	}
	j.statement(statements[0])
}

func (j *job) fail(err *protocol.Error) {
	j.err = err
	j.answer = protocol.Failure(err, j.queryID)
}

// statement executes one statement, sets the answer and records the execution.
func (j *job) statement(sql string) {
	sess := j.session
	view := sess.view()
	view.DescribeOnly = j.req.DescribeOnly
	record := &history.Record{QueryID: j.id, Text: sql, Start: j.started.UTC(), QueryType: "UNKNOWN",
		Table: warehouse.None.String(), Context: history.Context{
			SessionID: view.ID, User: view.User, Role: view.Role, Database: view.Database, Schema: view.Schema,
			Warehouse: view.Warehouse, Tag: j.tag(view)}}
	err := j.execute(sql, view, record)
	if err != nil {
		var reported *protocol.Error
		if !errors.As(err, &reported) {
			if reported = explain(err); context.Cause(j.ctx) != nil {
				reported = cancelled(err)
			}
		}
		j.fail(reported)
		record.ErrorCode, record.ErrorMessage = reported.Code, reported.Message
	}
	record.End = time.Now().UTC()
	if !j.req.DescribeOnly {
		j.server.history.Add(record)
		if j.server.journal != nil {
			j.server.journal.Add(record)
		}
	}
}

// tag is the QUERY_TAG of a statement: of the request, else of the session.
func (j *job) tag(view *translate.Session) string {
	if v, ok := j.req.Parameters["QUERY_TAG"]; ok {
		return fmt.Sprint(v)
	}
	return view.Parameters["QUERY_TAG"]
}

func (j *job) execute(sql string, view *translate.Session, record *history.Record) error {
	s, sess := j.server, j.session
	about, err := s.stages.read(view.User, sess.client, j.host, sql)
	switch {
	case err != nil:
		return err
	case about != nil && about.insert == "":
		return j.onStage(about)
	case about != nil:
		sql, j.req.Bindings = about.insert, about.bindings
	}
	binds, err := protocol.ReadBindings(j.req.Bindings)
	if err != nil {
		return err
	}
	if j.req.BindStage != "" {
		return protocol.NotSimulated("binds from a stage")
	}
	p, err := s.translator.Plan(j.ctx, view, sql, binds.First)
	if err != nil {
		return err
	}
	record.QueryType, record.Table = queryType(p.Type, sql), p.Work.Table.String()
	if j.req.DescribeOnly {
		return j.describe(p)
	}
	result, err := j.onWarehouse(view, p, binds, record)
	if fallback := s.account.fallback(view, p, err); fallback != "" {
		// The client does not learn that another warehouse executed it.
		again := *view
		again.Warehouse = fallback
		record.Warehouse = fallback
		result, err = j.onWarehouse(&again, p, binds, record)
	}
	if err != nil {
		return err
	}
	sess.apply(p.Effect)
	if p.Type < protocol.Insert || p.Type > protocol.Delete {
		record.RowsProduced = result.Total
	}
	record.BytesScanned = result.Bytes
	return j.finished(result, p.Type)
}

// onStage answers a statement that concerns files alone: those of a PUT are stored by the driver.
func (j *job) onStage(about *stageStatement) error {
	if about.columns == nil {
		about.columns = []protocol.Column{protocol.Text("status")}
	}
	result := protocol.NewResult(j.limits(), about.columns)
	for _, row := range about.rows {
		result.Row(row)
	}
	j.succeed(result, protocol.Select)
	data, _ := j.answer.Data.(map[string]any)
	maps.Copy(data, about.data)
	return nil
}

// onWarehouse executes a plan as soon as its warehouse has room.
func (j *job) onWarehouse(view *translate.Session, p *translate.Plan, binds protocol.Bindings,
	record *history.Record) (*protocol.Result, error) {
	s, sess := j.server, j.session
	if p.Work.Table != warehouse.None && view.Warehouse != "" && !s.translator.MayUse(view, view.Warehouse) {
		return nil, modelError(warehouse.ErrUnknown, view.Warehouse)
	}
	if err := s.account.checkInteractive(view.Warehouse, p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(j.ctx)
	defer cancel(nil)
	if limit := s.timeout(view, p.Work); limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, &protocol.Error{Code: protocol.CodeTimeout, State: "57014",
			Message: fmt.Sprintf("Statement reached its statement or warehouse timeout of %d second(s) and was canceled.",
				int64(limit.Seconds()))})
		defer stop()
	}
	grant, err := s.account.acquire(ctx, view.Warehouse, p.Work, sess.conn != nil)
	if err != nil {
		return nil, err
	}
	defer grant.release()
	begun := time.Now()
	result, err := j.perform(ctx, p, binds)
	if p.Transaction == translate.None && err != nil {
		err = fmt.Errorf("executing: %w", err)
	}
	if err == nil {
		// The model's time includes the time that Postgres took.
		err = wait(ctx, grant.Total()-time.Since(begun))
	}
	record.WarehouseSize, record.WarehouseType, record.Cluster = grant.Size, grant.Type, grant.Cluster
	record.Compilation, record.QueuedProvisioning, record.QueuedOverload = grant.Compilation, grant.QueuedProvisioning,
		grant.QueuedOverload
	record.Execution = max(time.Since(begun)-grant.Compilation, 0)
	record.Throttled = grant.Throttled
	if err != nil && ctx.Err() != nil && j.ctx.Err() == nil {
		err = context.Cause(ctx)
	}
	return result, err
}

// timeout is the shorter one of the session's and the warehouse's; 0 is none.
func (s *Server) timeout(view *translate.Session, work warehouse.Work) time.Duration {
	var limit time.Duration
	if seconds, err := strconv.ParseInt(strings.TrimSpace(view.Parameters["STATEMENT_TIMEOUT_IN_SECONDS"]), 10,
		64); err == nil && seconds > 0 {
		limit = time.Duration(seconds) * time.Second
	}
	if work.Table != warehouse.None {
		if house, found := s.account.Get(view.Warehouse); found && house.StatementTimeout > 0 &&
			(limit == 0 || house.StatementTimeout < limit) {
			limit = house.StatementTimeout
		}
	}
	return limit
}

// perform runs a plan's work on Postgres, or in Go.
func (j *job) perform(ctx context.Context, p *translate.Plan, binds protocol.Bindings) (*protocol.Result, error) {
	sess := j.session
	if p.DDL && sess.view().Transaction {
		// DDL commits what is open, as in Snowflake.
		if err := sess.finish(ctx, "COMMIT"); err != nil {
			return nil, err
		}
	}
	switch p.Transaction {
	case translate.Begin:
		sess.begin(p.TransactionName)
	case translate.Commit:
		if err := sess.finish(ctx, "COMMIT"); err != nil {
			return nil, err
		}
	case translate.Rollback:
		if err := sess.finish(ctx, "ROLLBACK"); err != nil {
			return nil, err
		}
	}
	if p.Local != nil {
		made, err := p.Local(ctx)
		if err != nil {
			return nil, err
		}
		out := protocol.NewResult(j.limits(), made.Columns)
		for _, row := range made.Rows {
			out.Row(row)
		}
		return out, nil
	}
	if p.SQL == "" && p.Before == nil {
		return j.status(p), nil
	}
	out, err := j.onPostgres(ctx, p, binds)
	if p.DDL {
		j.server.generation.Add(1)
	}
	return out, err
}

func (j *job) status(p *translate.Plan) *protocol.Result {
	message := p.Status
	if message == "" {
		message = "Statement executed successfully."
	}
	out := protocol.NewResult(j.limits(), []protocol.Column{protocol.Text("status")})
	out.Row([]any{message})
	return out
}

// finish ends the transaction of a session. The caller holds statementMu.
func (sess *session) finish(ctx context.Context, how string) error {
	if sess.conn != nil {
		if _, err := sess.conn.Exec(ctx, how); err != nil {
			sess.release(true)
			return err
		}
	}
	sess.release(false)
	return nil
}

// describe answers a request for the result's columns only.
func (j *job) describe(p *translate.Plan) error {
	columns := p.Columns
	if columns == nil && p.SQL != "" {
		err := j.server.pool.AcquireFunc(j.ctx, func(conn *pgxpool.Conn) error {
			d, err := conn.Conn().PgConn().Prepare(j.ctx, "", p.SQL, nil)
			if err != nil {
				return err
			}
			columns = p.Describe(d.Fields)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(columns) == 0 {
		columns = []protocol.Column{protocol.Text("status")}
	}
	out := protocol.NewResult(j.limits(), columns)
	j.succeed(out, p.Type)
	data := j.answer.Data.(map[string]any) //nolint:forcetypeassert // made a line above
	data["numberOfBinds"] = len(p.Params)
	return nil
}

// wait sleeps unless ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// queryType is the history's QUERY_TYPE.
func queryType(t protocol.StatementType, sql string) string {
	switch t {
	case protocol.Select:
		return "SELECT"
	case protocol.Insert:
		return "INSERT"
	case protocol.Update:
		return "UPDATE"
	case protocol.Delete:
		return "DELETE"
	case protocol.Show:
		return "SHOW"
	case protocol.Use:
		return "USE"
	case protocol.AlterSession:
		return "ALTER_SESSION"
	}
	words := strings.Fields(strings.ToUpper(sql))
	switch {
	case len(words) > 0 && t == protocol.TransactionType:
		return words[0]
	case len(words) > 3 && words[0] == "CREATE" && words[1] == "OR":
		return "CREATE_" + words[3]
	case len(words) > 1:
		return words[0] + "_" + words[1]
	}
	return "UNKNOWN"
}

// limits are those of this server's results.
func (j *job) limits() protocol.Limits {
	return protocol.Limits{Inline: j.server.opts.InlineBytes, Chunk: j.server.opts.ChunkBytes}
}

// finished sets the answer of a statement that succeeded, in the form in which an account sends it: rows of a SELECT
// are Arrow, unless the session wants JSON.
func (j *job) finished(r *protocol.Result, kind protocol.StatementType) error {
	if kind != protocol.Select || !strings.EqualFold(j.session.resultFormat(), "arrow") {
		j.succeed(r, kind)
		return nil
	}
	data, chunks, size, err := r.FinishArrow()
	if err != nil {
		return err
	}
	j.answerWith(data, chunks, size, kind)
	return nil
}

// succeed sets the answer of a statement that succeeded, and its chunks, as JSON.
func (j *job) succeed(r *protocol.Result, kind protocol.StatementType) {
	data, chunks, size := r.Finish()
	j.answerWith(data, chunks, size, kind)
}

func (j *job) answerWith(data map[string]any, chunks []protocol.Chunk, size int, kind protocol.StatementType) {
	view := j.session.view()
	for key, value := range map[string]any{
		"parameters": j.session.parameterList(), "queryId": j.queryID, "databaseProvider": nil,
		"finalDatabaseName": orNull(view.Database), "finalSchemaName": orNull(view.Schema),
		"finalWarehouseName": orNull(view.Warehouse), "finalRoleName": view.Role, "numberOfBinds": 0,
		"arrayBindSupported": false, "statementTypeId": int64(kind), "version": 1,
		"sendResultTime": time.Now().UnixMilli(),
	} {
		data[key] = value
	}
	j.resultBytes = size
	if len(chunks) > 0 {
		list := make([]map[string]any, len(chunks))
		for i, c := range chunks {
			j.chunks = append(j.chunks, c.Data)
			list[i] = map[string]any{"url": "http://" + j.server.Addr() + "/chunks/" + j.queryID + "/" + strconv.Itoa(i) +
				"?key=" + j.chunkKey(),
				"rowCount": c.Rows, "uncompressedSize": c.Uncompressed, "compressedSize": len(c.Data)}
		}
		data["chunks"], data["chunkHeaders"] = list, map[string]string{"x-snowsim": "chunk"}
	}
	j.answer = protocol.Success(data)
}

// explain turns an error into one that Snowflake could have reported.
func explain(err error) *protocol.Error {
	var reported *protocol.Error
	if errors.As(translate.Error(err), &reported) {
		return reported
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cancelled(err)
	}
	return &protocol.Error{Code: "300002", State: "XX000", Message: "Processing aborted by error 300002: " + err.Error(),
		Cause: err}
}

func cancelled(err error) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeCancelled, State: "57014", Message: "SQL execution canceled", Cause: err}
}
