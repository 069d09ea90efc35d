// Package outlet holds sinks that reach beyond the process: rows that are posted to an address, and rows that stop a
// run.
package outlet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/reach"
	"github.com/loadstone-db/loadstone/engine/statement"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
)

// StopRun stops a run as a guardrail does; the sentence is its reason. It may be asked of a run that has ended.
type StopRun func(ctx context.Context, runID, sentence string) error

// stopWithin bounds how long stopping a run may take.
const stopWithin = 10 * time.Second

// guardrail stops runs.
type guardrail struct {
	query, run string
	columns    []column.Column
	stop       StopRun
	tell       Tell
	stopped    map[string]bool
}

// RunColumn is the column of a query's rows that names a run, -1 where there is none.
func RunColumn(columns []column.Column) int {
	for i, c := range columns {
		if strings.EqualFold(strings.ReplaceAll(c.Name, "_", ""), "runid") {
			return i
		}
	}
	return -1
}

// Guardrail returns a sink that stops the run of its setting, or else the one that each row names. A run is stopped
// once.
func Guardrail(query string, c feed.Config, columns []column.Column, stop StopRun, tell Tell) feed.Sink {
	return &guardrail{query, c.Text("SINK.RUN_ID"), columns, stop, tell, map[string]bool{}}
}

// Write implements feed.Sink.
func (g *guardrail) Write(b *column.Batch) error {
	at := RunColumn(g.columns)
	for i := range b.N {
		run := g.run
		if run == "" && at >= 0 {
			run = string(b.Cols[at].AppendValue(nil, i))
		}
		if run == "" || g.stopped[run] {
			continue
		}
		g.stopped[run] = true
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		row := InWords(g.columns, b, i)
		err := g.stop(ctx, run, "Rule triggered: "+g.query+": "+row)
		cancel()
		g.tell.tell(Alert{RunID: run, Row: row, Rows: 1}, err)
		if err != nil {
			return fmt.Errorf("stopping the run %s: %w", run, err)
		}
	}
	return nil
}

// Close implements feed.Sink.
func (g *guardrail) Close() error { return nil }

// attempts and between are how often rows are posted, and how far apart: for about a minute in all.
const attempts = 8

var between = 500 * time.Millisecond

// webhook posts rows as lines of JSON.
type webhook struct {
	url     string
	columns []column.Column
	tell    Tell
	client  *http.Client
	rows    bytes.Buffer
	lines   feed.Sink
	ctx     context.Context
	end     context.CancelFunc
	once    sync.Once
}

// ErrSealed is an address that was kept with a key that this server does not have.
var ErrSealed = errors.New("the address of the sink is sealed with another key: DROP the sink and make it anew")

// Webhook returns a sink that posts each batch of rows as lines of JSON; what the policy refuses is not reached. It is
// tried again where the address does not answer, or with a status of 500 and above; the query waits meanwhile.
func Webhook(ctx context.Context, c feed.Config, columns []column.Column, policy *reach.Policy,
	tell Tell) (feed.Sink, error) {
	w := &webhook{url: c.Text("SINK.URL"), columns: columns, tell: tell}
	if w.url == "" {
		return nil, ErrSealed
	}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, w.end)
	w.client = &http.Client{Timeout: stopWithin,
		Transport:     &http.Transport{DialContext: policy.Dial, MaxIdleConnsPerHost: 1, TLSHandshakeTimeout: stopWithin},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var err error
	w.lines, err = feed.OpenSink(feed.Print, feed.Config{"SINK.INPUT_FORMAT": "JSON"}, columns, nil, &w.rows)
	return w, err
}

// errAnswer is an answer that another attempt does not change.
var errAnswer = errors.New("the address refused the rows")

// Write implements feed.Sink.
func (w *webhook) Write(b *column.Batch) error {
	err := w.write(b)
	a := Alert{Rows: b.N}
	if b.N > 0 {
		a.Row = InWords(w.columns, b, 0)
	}
	w.tell.tell(a, err)
	return err
}

func (w *webhook) write(b *column.Batch) error {
	w.rows.Reset()
	if err := w.lines.Write(b); err != nil {
		return err
	}
	wait := between
	for n := 1; ; n++ {
		err := w.post()
		if err == nil {
			return nil
		}
		if n == attempts || w.ctx.Err() != nil || errors.Is(err, errAnswer) || errors.Is(err, reach.ErrRefused) {
			e := statement.Errorf(statement.NetworkError, "", -1, "", "rows could not be posted: %v", err)
			e.Cause = err
			return e
		}
		select {
		case <-time.After(wait):
		case <-w.ctx.Done():
		}
		wait *= 2
	}
}

func (w *webhook) post() error {
	r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.url, bytes.NewReader(w.rows.Bytes()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	answer, err := w.client.Do(r)
	if err != nil {
		return w.quiet(err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 4<<10))
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode < http.StatusMultipleChoices:
		return nil
	case answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("the address answered %s", answer.Status)
	}
	return fmt.Errorf("%w: it answered %s", errAnswer, answer.Status)
}

// quiet is an error without the whole address, whose path and query often are a secret: readers of a query see its
// failure.
func (w *webhook) quiet(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: %w", feed.Origin(w.url), err)
}

// Close implements feed.Sink.
func (w *webhook) Close() error {
	w.once.Do(func() { w.end(); w.client.CloseIdleConnections() })
	return nil
}
