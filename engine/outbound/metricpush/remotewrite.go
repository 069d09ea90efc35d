// This part sends the metrics of live runs as Prometheus' remote-write says: version 2.0, and 1.0 where the
// receiver does not know the second. Latencies are native histograms.
//
// https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/

package metricpush

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/snappy"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
)

// RemoteWriter sends points to a receiver. It implements Sink.
type RemoteWriter struct {
	delivery.Sink[Point]
	log zerolog.Logger

	// The sending goroutine's: the receiver knows the second version, or only the first.
	acceptsV2, onlyV1 bool
	packed            []byte
}

// OpenRemoteWrite begins to send to an endpoint. It does not wait for it.
func OpenRemoteWrite(e delivery.Endpoint, log zerolog.Logger) (*RemoteWriter, error) {
	return openRemoteWrite(e, delivery.SampleLimits, log)
}

func openRemoteWrite(e delivery.Endpoint, l delivery.Limits, log zerolog.Logger) (*RemoteWriter, error) {
	client, err := delivery.NewClient(e)
	if err != nil {
		return nil, err
	}
	w := &RemoteWriter{log: log}
	w.Sink = delivery.OpenSink(client, l, w.send, log)
	return w, nil
}

const (
	contentTypeV1           = "application/x-protobuf"
	contentTypeV2           = contentTypeV1 + ";proto=io.prometheus.write.v2.Request"
	versionHeader           = "X-Prometheus-Remote-Write-Version"
	samplesWrittenHeader    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsWrittenHeader = "X-Prometheus-Remote-Write-Histograms-Written"
)

func (w *RemoteWriter) send(ctx context.Context, points []Point, attempt int) delivery.Outcome {
	answer, err := w.post(ctx, points, attempt, w.onlyV1)
	if err != nil {
		return delivery.Outcome{Retry: true, Err: err}
	}
	wrote, says := writtenCount(answer.Header)
	if !w.onlyV1 && !w.acceptsV2 && !says && mayNotKnowV2(answer) {
		// One who knows the first version only says so (415), finds nothing in the message (400), or takes it for an
		// empty one of its own and does not say how much of it was written.
		answered, err := w.post(ctx, points, attempt, true)
		if err != nil {
			return delivery.Outcome{Retry: true, Err: err}
		}
		if again, _ := answered.Retryable(); answered.OK() || !again && answer.Status != http.StatusBadRequest {
			w.onlyV1 = true
			w.log.Info().Str("destination", w.To()).Int("status", answer.Status).
				Msg("the receiver does not know the second version of remote-write: it gets the first")
		}
		answer = answered
		wrote, says = writtenCount(answer.Header)
	}
	w.acceptsV2 = w.acceptsV2 || says && !w.onlyV1
	return outcomeOf(answer, wrote, says, len(points))
}

// mayNotKnowV2 reports whether an answer may be of one who does not know the second version.
func mayNotKnowV2(a *delivery.Response) bool {
	return a.OK() || a.Status == http.StatusUnsupportedMediaType || a.Status == http.StatusBadRequest
}

// outcomeOf says what an answer means for the points. A part of a request may have been written, also where the answer
// is an error: what is sent again is the same then, and is written once.
func outcomeOf(a *delivery.Response, wrote int, says bool, points int) delivery.Outcome {
	out := delivery.OutcomeOf(a, nil, points)
	switch {
	case out.Err != nil && !out.Retry:
		out.Delivered = wrote
	case out.Err == nil && says && wrote < points:
		out.Delivered, out.Err = wrote, fmt.Errorf("the receiver has written %d of %d samples", wrote, points)
	}
	return out
}

// writtenCount is how much of a request was written, says whether the answer says so.
func writtenCount(h http.Header) (n int, says bool) {
	for _, name := range []string{samplesWrittenHeader, histogramsWrittenHeader} {
		if v, err := strconv.Atoi(h.Get(name)); err == nil && v >= 0 {
			n, says = n+v, true
		}
	}
	return n, says
}

func (w *RemoteWriter) post(
	ctx context.Context,
	points []Point,
	attempt int,
	first bool,
) (*delivery.Response, error) {
	encode, kind, number := encodeV2, contentTypeV2, "2.0.0"
	if first {
		encode, kind, number = encodeV1, contentTypeV1, "0.1.0"
	}
	message, err := encode(points)
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	w.packed = snappy.Encode(w.packed[:cap(w.packed)], message)
	headers := []string{"Content-Encoding", "snappy", versionHeader, number}
	if attempt > 0 {
		headers = append(headers, "Retry-Attempt", strconv.Itoa(attempt))
	}
	answer, err := w.Client.Post(ctx, "", kind, w.packed, headers...)
	if err != nil && ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return answer, err
}
