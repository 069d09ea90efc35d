package metrics

import "github.com/prometheus/client_golang/prometheus"

// CacheState is how full the cache of results in S3 is, and how often it had what was asked for.
type CacheState struct{ Bytes, Limit, Hits, Misses int64 }

// Cache is the metrics of the cache of results in S3, read when they are scraped.
type Cache struct{ read func() CacheState }

// NewCache returns them.
func NewCache(read func() CacheState) Cache { return Cache{read} }

var (
	cacheBytesDesc = prometheus.NewDesc("loadstone_results_cache_bytes", "Bytes of the disk cache of S3 results.",
		nil, nil)
	cacheLimitDesc = prometheus.NewDesc(
		"loadstone_results_cache_limit_bytes",
		"Maximum bytes of the disk cache of S3 results.",
		nil,
		nil,
	)
	cacheHitsDesc = prometheus.NewDesc(
		"loadstone_results_cache_hits_total",
		"Blocks of S3 results found in the disk cache.",
		nil,
		nil,
	)
	cacheMissDesc = prometheus.NewDesc(
		"loadstone_results_cache_misses_total",
		"Blocks of S3 results requested from S3.",
		nil,
		nil,
	)
)

// Describe implements prometheus.Collector.
func (c Cache) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheBytesDesc, cacheLimitDesc, cacheHitsDesc, cacheMissDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c Cache) Collect(ch chan<- prometheus.Metric) {
	s := c.read()
	ch <- prometheus.MustNewConstMetric(cacheBytesDesc, prometheus.GaugeValue, float64(s.Bytes))
	ch <- prometheus.MustNewConstMetric(cacheLimitDesc, prometheus.GaugeValue, float64(s.Limit))
	ch <- prometheus.MustNewConstMetric(cacheHitsDesc, prometheus.CounterValue, float64(s.Hits))
	ch <- prometheus.MustNewConstMetric(cacheMissDesc, prometheus.CounterValue, float64(s.Misses))
}
