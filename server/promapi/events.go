package promapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
)

// partialInterval is how often a query that goes on is answered with what it comes to so far.
const partialInterval = 250 * time.Millisecond

// progress is a piece of a query that is done.
type progress struct {
	Done int `json:"done"`
	promql.WorkStats
}

// events answers a query, at an instant or, where it has a step, over a range, as server-sent events: plan, progress of
// each piece, partial answers, and at the end warnings with result, or error.
func (h handlers) events(c *fiber.Ctx) error {
	of := h.atInstant
	if formValue(c, "step") != "" {
		of = h.overRange
	}
	prepare, err := of(c)
	if err != nil {
		return respondError(c, err)
	}
	// The query outlives the handler, and its request: what it needs of that is taken now.
	query, err := prepare(c.UserContext())
	if err != nil {
		return respondError(c, badRequest("query", "%w", err))
	}
	ctx, stop, err := queryContext(c, h.streams.Life)
	if err != nil {
		return respondError(c, err)
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("X-Accel-Buffering", "no")
	return h.streams.Stream(c, stop, func(life context.Context, w io.Writer) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		return h.stream(ctx, query, w)
	})
}

func (h handlers) stream(ctx context.Context, query *promql.Query, w io.Writer) error {
	defer query.Close()
	send := func(event string, data any) error {
		b, err := json.Marshal(data)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, b)
		return err
	}
	leave, err := h.limiter.acquire(ctx)
	if err != nil {
		return send("error", answer{Status: "error", ErrorType: kindOf(err), Error: err.Error()})
	}
	defer leave()
	begin, done := time.Now(), 0
	last := begin
	if err := send("plan", map[string]any{"query_id": query.ID(), "leaves": leafStatsOf(query)}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query.OnResult = func(p promql.WorkStats) {
		done++
		err := send("progress", progress{done, p})
		if err == nil && done < p.Total && (done == 1 || time.Since(last) >= partialInterval) {
			r, closed := query.PartialResult(ctx)
			if r.Err == nil {
				if data, bad := dataOf(r.Value); bad == nil {
					err = send("partial", data)
				}
			}
			closed()
			last = time.Now()
		}
		if err != nil {
			cancel()
		}
	}
	result := query.Exec(ctx)
	for _, text := range result.Warnings.AsErrors() {
		if err := send("warning", text.Error()); err != nil {
			return err
		}
	}
	data, err := resultJSON{}, result.Err
	if err == nil {
		data, err = dataOf(result.Value)
	}
	if err != nil {
		return send("error", answer{Status: "error", ErrorType: kindOf(err), Error: err.Error()})
	}
	data.Stats = statsOf(query, time.Since(begin))
	return send("result", data)
}
