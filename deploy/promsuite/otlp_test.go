package promsuite_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/outbound/metricpush"
	"github.com/loadstone-db/loadstone/engine/outbound/otlp"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// TestMetricsByOTLP: Prometheus' own receiver of OTLP has the counters exactly, and quantiles within a bucket.
func TestMetricsByOTLP(t *testing.T) {
	run, batches := minute("r-1")
	db := teststorage.New(t)
	server := httptest.NewServer(remote.NewOTLPWriteHandler(promslog.NewNopLogger(), nil, db,
		func() config.Config { return config.DefaultConfig }, remote.OTLPOptions{LookbackDelta: 5 * time.Minute}))
	defer server.Close()
	s, err := otlp.OpenMetrics(delivery.Endpoint{Flag: "--otlp-metrics", URL: secret.New(server.URL)}, "server-1", "1.0",
		zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatal(err)
	}
	feed := metricpush.Start(s)
	if _, err := feed.BeginLive(t.Context(), run, 1); err != nil {
		t.Fatal(err)
	}
	var latency rollup.Cell
	operations, failures := int64(0), int64(0)
	for _, b := range batches {
		seconds := rollup.New(run.StartTime.Time)
		seconds.Add(b)
		for at, c := range seconds.Kinds {
			if !at.Warmup {
				latency.Latency.Merge(&c.Latency)
			}
			operations, failures = operations+c.Operations, failures+c.Errors
		}
		if err := feed.PutLive(t.Context(), rollup.Live{RunID: run.RunID, Epoch: 1, Seconds: seconds}); err != nil {
			t.Fatal(err)
		}
	}
	feed.Ended(run.RunID)
	feed.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s.Close(ctx)
	if c := s.Counts(); c.Sent < 2000 || c.Lost[delivery.LostRejected] > 0 {
		t.Fatalf("%+v", c)
	}
	measured := int64(0)
	for _, n := range latency.Latency.Data().Counts {
		measured += n
	}
	d := latency.Latency.Data()
	for text, want := range map[string][2]float64{
		`sum(loadstone_operations_total)`:                                      {float64(operations), 0},
		`sum(loadstone_failed_operations_total)`:                               {float64(failures), 0},
		`sum(loadstone_errors_total)`:                                          {float64(failures), 0},
		`sum(histogram_count(loadstone_latency_seconds{phase="measurement"}))`: {float64(measured), 0},
		`sum(histogram_sum(loadstone_latency_seconds{phase="measurement"}))`:   {float64(d.Sum) / 1e9, 1e-9},
		// The median of what minute makes, and the width of two buckets.
		`histogram_quantile(0.5, sum(loadstone_latency_seconds{phase="measurement"}))`:  {0.0028, 0.022},
		`count(loadstone_operations_total{job="loadstone-server",instance="server-1"})`: {6, 0},
	} {
		q, err := promql.DefaultOptions().Engine(5*time.Minute).NewInstantQuery(t.Context(), db, nil, text,
			promqltest.Noon.Add(75*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		v, err := q.Exec(t.Context()).Vector()
		if err != nil || len(v) != 1 || v[0].F < want[0]*(1-want[1]) || v[0].F > want[0]*(1+want[1]) {
			t.Errorf("%s is %v, %v; want %v", text, v, err, want)
		}
		q.Close()
	}
	q, err := promql.DefaultOptions().Engine(5*time.Minute).NewInstantQuery(t.Context(), db, nil,
		`loadstone_operations_total`, promqltest.Noon.Add(77*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if v, err := q.Exec(t.Context()).Vector(); err != nil || len(v) != 0 {
		t.Errorf("after the end there is %v, %v", v, err)
	}
}
