package otlp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// How many spans wait at most, how many are sent together, and how long the first of them waits for others.
const (
	queueSize   = 4096
	batchSize   = 512
	batchDelay  = time.Second
	logInterval = time.Minute
)

// queue sends spans in batches, one after another. It implements sdk.SpanProcessor.
type queue struct {
	exporter sdk.SpanExporter
	waiting  chan sdk.ReadOnlySpan
	delay    time.Duration
	log      zerolog.Logger

	// sending ends when no more is to be sent, ending is closed when the queue is to be emptied, ended when it was.
	sending context.Context
	cut     context.CancelFunc
	closing chan struct{}
	once    sync.Once
	done    chan struct{}

	sent, dropped, failed atomic.Int64
	// complained is when the log last said that spans are lost.
	mu       sync.Mutex
	loggedAt time.Time
}

func newQueue(to sdk.SpanExporter, room int, delay time.Duration, log zerolog.Logger) *queue {
	q := &queue{exporter: to, waiting: make(chan sdk.ReadOnlySpan, room), delay: delay, log: log,
		closing: make(chan struct{}), done: make(chan struct{})}
	q.sending, q.cut = context.WithCancel(context.Background()) //nolint:gosec // it ends with its owner
	go q.work()
	return q
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor. It never waits.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case <-q.closing:
		q.dropped.Add(1)
		return
	default:
	}
	select {
	case q.waiting <- s:
	default:
		q.dropped.Add(1)
	}
}

// ForceFlush implements sdk.SpanProcessor; nobody asks for it.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdk.SpanProcessor: it sends what waits, for as long as ctx allows.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.closing) })
	stop := context.AfterFunc(ctx, q.cut)
	defer stop()
	<-q.done // soon after ctx: all that waits in there has it
	return q.exporter.Shutdown(context.WithoutCancel(ctx))
}

// work sends what waits until the end.
func (q *queue) work() {
	defer close(q.done)
	for {
		batch, last := q.collect()
		if len(batch) > 0 {
			q.send(batch)
		}
		if last {
			return
		}
	}
}

// collect waits for a batch; last: the queue has ended, and nothing waits any more.
func (q *queue) collect() (batch []sdk.ReadOnlySpan, last bool) {
	var due <-chan time.Time
	ending := q.closing
	for len(batch) < batchSize {
		select {
		case s := <-q.waiting:
			if batch = append(batch, s); due == nil {
				due = time.After(q.delay)
			}
			continue
		default:
		}
		if ending == nil {
			return batch, true
		}
		select {
		case s := <-q.waiting:
			if batch = append(batch, s); due == nil {
				due = time.After(q.delay)
			}
		case <-due:
			return batch, false
		case <-ending:
			ending = nil // what waits now is the last
		}
	}
	return batch, false
}

// send sends a batch, or counts it as lost.
func (q *queue) send(batch []sdk.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(q.sending, batchTimeout+attemptTimeout)
	defer cancel()
	err := q.exporter.ExportSpans(ctx, batch)
	if err == nil {
		q.sent.Add(int64(len(batch)))
		return
	}
	q.failed.Add(int64(len(batch)))
	if !errors.Is(err, context.Canceled) || q.sending.Err() == nil {
		q.logLoss(err)
	}
}

// logLoss says in the log that spans are lost, once a minute at most.
func (q *queue) logLoss(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.loggedAt.IsZero() && time.Since(q.loggedAt) < logInterval {
		return
	}
	q.loggedAt = time.Now()
	q.log.Warn().Err(err).Int64("spans_lost", q.failed.Load()+q.dropped.Load()).
		Msg("spans could not be sent to the collector of traces; nothing else waits for it")
}

var spansDesc = prometheus.NewDesc("loadstone_trace_spans_total",
	"Trace spans, by outcome: sent, failed (rejected by the collector), dropped (queue full).",
	[]string{"outcome"}, nil)

// Describe implements prometheus.Collector.
func (q *queue) Describe(ch chan<- *prometheus.Desc) { ch <- spansDesc }

// Collect implements prometheus.Collector.
func (q *queue) Collect(ch chan<- prometheus.Metric) {
	for outcome, n := range map[string]int64{"sent": q.sent.Load(), "failed": q.failed.Load(),
		"dropped": q.dropped.Load()} {
		ch <- prometheus.MustNewConstMetric(spansDesc, prometheus.CounterValue, float64(n), outcome)
	}
}
