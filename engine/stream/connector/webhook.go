package connector

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

const (
	// retryTimeout is how long rows are tried again that an address does not take; the last attempt may take longer.
	retryTimeout = time.Minute
	// minBackoff and maxBackoff are how far attempts are apart, unless the address says a longer time.
	minBackoff = 500 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// deliveryHeader names rows that are posted: it is the same for each attempt, so that who has taken them, and whose
// answer has not arrived, knows them again.
const deliveryHeader = "X-Loadstone-Delivery"

// webhook posts rows as lines of JSON.
type webhook struct {
	client       *delivery.Client
	columns      []column.Column
	alert        AlertFunc
	rows         bytes.Buffer
	lines        Sink
	ctx          context.Context
	end          context.CancelFunc
	once         sync.Once
	retryTimeout time.Duration
}

// ErrSealed is an address that was kept with a key that this server does not have.
var ErrSealed = errors.New("the address of the sink is sealed with another key: DROP the sink and make it anew")

// NewWebhook returns a sink that posts each batch of rows as lines of JSON; what the policy refuses is not reached. For
// a minute it is tried again where the address does not answer, or asks for it by its status; who writes waits
// meanwhile, and alerts that are Again tell why. Close, and the end of ctx, end a Write that waits.
func NewWebhook(ctx context.Context, url secret.Secret, columns []column.Column, policy *egress.Policy,
	tell AlertFunc) (Sink, error) {
	w := &webhook{columns: columns, alert: tell, retryTimeout: retryTimeout}
	if url.IsZero() {
		return nil, ErrSealed
	}
	var err error
	if w.client, err = delivery.NewClient(delivery.Endpoint{Flag: "SINK.URL", URL: url, Egress: policy,
		HideInternal: true}); err != nil {
		e := sql.Errorf(sql.InvalidConfig, "", -1, "name another address",
			"rows can not be posted to the address: %v", err)
		e.Cause = err
		return nil, e
	}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, w.end)
	w.lines, err = OpenSink(Print, Config{"SINK.INPUT_FORMAT": "JSON"}, columns, nil, &w.rows)
	return w, err
}

// Write implements Sink.
func (w *webhook) Write(b *column.Batch) error {
	if b.N == 0 {
		return nil
	}
	a := Alert{Rows: b.N, Row: RowText(w.columns, b, 0)}
	err := w.write(b, a)
	if w.rows.Cap() > maxKeptBuffer {
		w.rows = bytes.Buffer{}
	}
	w.alert.send(a, err)
	return err
}

func (w *webhook) write(b *column.Batch, a Alert) error {
	w.rows.Reset()
	if err := w.lines.Write(b); err != nil {
		return err
	}
	begun, name := time.Now(), rand.Text()
	attempts, err := w.retried(func() delivery.Outcome { return w.post(name) }, func(err error) {
		a.Retrying = true
		w.alert.send(a, err)
	})
	if err == nil {
		return nil
	}
	tried := ""
	if attempts > 1 {
		tried = fmt.Sprintf(" for %s, in %d attempts", time.Since(begun).Round(time.Second), attempts)
	}
	e := sql.Errorf(sql.NetworkError, "", -1, "put that right, then DROP the query and CREATE it again",
		"%d rows could not be posted%s: %v", b.N, tried, err)
	e.Cause = err
	return e
}

// retried makes attempts until one succeeds, until another would not help, or until the time for them is over, with the
// last attempt at its end. It reports each failure that another attempt follows, and returns that of the last attempt.
func (w *webhook) retried(attempt func() delivery.Outcome, failed func(error)) (attempts int, err error) {
	begun := time.Now()
	pauses := backoff.Backoff{Min: minBackoff, Max: maxBackoff}
	for attempts = 1; ; attempts++ {
		out := attempt()
		left := w.retryTimeout - time.Since(begun)
		if out.Err == nil || !out.Retry || left <= 0 || w.ctx.Err() != nil {
			return attempts, out.Err
		}
		failed(out.Err)
		select {
		case <-time.After(min(max(pauses.Next(), out.RetryAfter), left)):
		case <-w.ctx.Done():
		}
	}
}

// maxKeptBuffer is how many bytes of rows that were posted are kept for the next ones.
const maxKeptBuffer = 1 << 20

// Held implements Holding.
func (w *webhook) Held() int { return w.rows.Cap() }

// post makes one attempt.
func (w *webhook) post(name string) delivery.Outcome {
	answer, err := w.client.Post(w.ctx, "", "application/x-ndjson", w.rows.Bytes(), deliveryHeader, name)
	out := delivery.OutcomeOf(answer, err, 1)
	if out.Err != nil {
		out.Retry = out.Retry && !errors.Is(err, egress.ErrRefused)
		out.Err = fmt.Errorf("%s: %w", w.client.To(), out.Err)
	}
	return out
}

// Close implements Sink.
func (w *webhook) Close() error {
	w.once.Do(func() { w.end(); w.client.Close() })
	return nil
}
