package prepare

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

const (
	// maxRounds bounds how often an adapter may ask for queries in one conversation.
	maxRounds = 8
	// maxQueries bounds the queries of one round.
	maxQueries = 64
	// queryTimeout bounds a query that names no limit of its own.
	queryTimeout = 30 * time.Second
	// maxQueryTimeout bounds the limit that a query names.
	maxQueryTimeout = 5 * time.Minute
	// maxAnswers bounds the bytes of the answers to all queries of one conversation,
	// a value counted with what it takes besides its text.
	maxAnswers, valueSize = 16 << 20, 24
	// maxNotes and maxNote bound what an adapter writes into the log of a run.
	maxNotes, maxNote = 50, 500
)

// callAdapter holds one conversation with the adapter: as long as it asks for queries,
// the host runs them, read only, and calls again with all results so far.
func (r *resolved) callAdapter(ctx context.Context, req plugin.AdapterRequest) (plugin.AdapterAnswer, error) {
	info := r.adapter.Info()
	req.Params, req.Lacks = r.adapterParams, r.server.Lacks
	kept := 0
	for range maxRounds {
		var answer plugin.AdapterAnswer
		if err := r.adapter.Call(ctx, req, &answer); err != nil {
			return answer, pluginFailed(info, "answering "+req.Op, err)
		}
		if f := answer.Refused; f != nil {
			return answer, refusal(info, *f)
		}
		if err := r.approved(req, &answer); err != nil {
			return answer, err
		}
		if len(answer.Queries) == 0 {
			answer.Notes = readable(answer.Notes)
			return answer, nil
		}
		if r.database == nil {
			return answer, pluginFailed(info, "answering "+req.Op,
				fmt.Errorf("it asked for queries before there was a connection"))
		}
		if len(answer.Queries) > maxQueries {
			return answer, pluginFailed(info, "answering "+req.Op,
				fmt.Errorf("%d queries at once are more than the %d allowed", len(answer.Queries), maxQueries))
		}
		if req.Results == nil {
			req.Results = map[string]plugin.QueryResult{}
		}
		for _, q := range answer.Queries {
			result, err := r.query(ctx, q)
			if err != nil {
				return answer, err
			}
			kept += sizeOf(result) - sizeOf(req.Results[q.ID])
			if kept > maxAnswers {
				return answer, pluginFailed(info, "answering "+req.Op, fmt.Errorf("the answers to its queries have "+
					"more than %d MB together, the quota of one conversation", maxAnswers>>20))
			}
			req.Results[q.ID] = result
		}
	}
	return plugin.AdapterAnswer{},
		pluginFailed(info, "answering "+req.Op, fmt.Errorf("it still asks for queries after %d rounds", maxRounds))
}

// keepSamples keeps what was sampled of a table.
func (p *planner) keepSamples(t tableState) error {
	for _, pool := range []*engine.Pool{t.pool, t.values, t.free} {
		if pool == nil {
			continue
		}
		if err := p.keep(*pool); err != nil {
			return err
		}
	}
	return nil
}

// keep keeps a sample of keys, as long as those of all tables are not too many.
func (p *planner) keep(pool engine.Pool) error {
	p.pools = append(p.pools, pool)
	n := 0
	for _, have := range p.pools {
		n += sizeOfRows(have.Rows)
		if have.Free != nil {
			for _, taken := range have.Free.Taken {
				n += len(taken)
			}
		}
	}
	if n > maxAnswers {
		return pluginFailed(p.adapter.Info(), "answering "+plugin.OpInspect, fmt.Errorf("its samples of keys have "+
			"more than %d MB together, the quota of a run", maxAnswers>>20))
	}
	return nil
}

// sizeOf is about how many bytes a result takes.
func sizeOf(r plugin.QueryResult) int { return len(r.Error) + sizeOfRows(r.Rows) }

func sizeOfRows(rows [][]any) int {
	n := 0
	for _, row := range rows {
		n += valueSize
		for _, v := range row {
			n += valueSize
			if s, ok := v.(string); ok {
				n += len(s)
			}
		}
	}
	return n
}

// refusal is the user-facing error of what an adapter refuses.
func refusal(info plugin.Info, f plugin.Refusal) error {
	texts := readable([]string{f.Field, f.Message, f.Hint})
	return &engine.Error{Code: engine.CodeInvalid,
		Message: fmt.Sprintf("The table type %s refuses: %s.", info.Name, strings.TrimRight(texts[1], ".")),
		Fields:  []engine.FieldError{{Field: texts[0], Message: texts[1], Hint: texts[2]}}}
}

// readable bounds an adapter's notes and takes out what a terminal would obey.
func readable(notes []string) []string {
	notes = notes[:min(len(notes), maxNotes)]
	for i, note := range notes {
		notes[i] = textsafe.OneLine(strings.ToValidUTF8(note[:min(len(note), maxNote)], ""))
	}
	return notes
}

// query runs one query of an adapter. What the database answers, errors
// included, is the adapter's to judge; only the end of ctx is an error here.
func (r *resolved) query(ctx context.Context, q plugin.Query) (plugin.QueryResult, error) {
	limit := queryTimeout
	if q.TimeoutMs > 0 {
		limit = time.Duration(min(q.TimeoutMs, maxQueryTimeout.Milliseconds())) * time.Millisecond
	}
	// The database ends the query itself; the context is for one that does not answer.
	qctx, cancel := context.WithTimeout(ctx, limit+time.Second)
	defer cancel()
	set, err := target.Read(qctx, r.database, q.SQL, limit, q.Args...)
	if ctx.Err() != nil {
		return plugin.QueryResult{}, fmt.Errorf("inspecting the target: %w", ctx.Err())
	}
	if errors.Is(err, target.ErrTooLarge) {
		return plugin.QueryResult{},
			pluginFailed(r.adapter.Info(), "inspecting the target",
				fmt.Errorf("the rows of its query %q have more than %d MB", q.ID, target.MaxResult>>20))
	}
	if err != nil {
		class := r.database.Classify(err)
		// There is no session: no adapter can say more than the driver. A privilege that
		// is missing within one (class auth too) is the adapter's to explain.
		var worded *engine.Error
		if class.Class == engine.ErrClassConnection || errors.As(err, &worded) {
			return plugin.QueryResult{}, targetError("inspecting the target", err)
		}
		return plugin.QueryResult{Error: class.Message, Code: class.Code}, nil
	}
	rows := make([][]any, len(set.Rows))
	for i, row := range set.Rows {
		rows[i] = make([]any, len(row))
		for c, v := range row {
			rows[i][c] = jsonValue(v)
		}
	}
	return plugin.QueryResult{Columns: set.Columns, Rows: rows}, nil
}

// jsonValue writes a value as the contract has it: integers that a double
// cannot hold, and times, are strings.
func jsonValue(v any) any {
	switch v := v.(type) {
	case int64:
		const exact = 1 << 53
		if v > exact || v < -exact {
			return fmt.Sprint(v)
		}
		return v
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []byte:
		return string(v)
	default:
		return v
	}
}
