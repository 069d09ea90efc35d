package promql

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
)

// Catalog says which segments there are.
type Catalog interface {
	// Segments are those that count now, of runs that have samples between the times (milliseconds, both included).
	Segments(ctx context.Context, from, to int64) ([]Segment, error)
}

// LeafEvaluator evaluates leaves where their series are.
type LeafEvaluator interface {
	// Evaluate hands each answer to fn, in any order and one at a time; an answer belongs to whoever gets it. It
	// returns when all are there, or with the first error.
	Evaluate(ctx context.Context, r *Request, fn func(WorkStats, LeafResult) error) error
}

// Request is what of a query is to be evaluated where the series are.
type Request struct {
	// QueryID names the query wherever something of it is done.
	QueryID string
	Plan    *QueryPlan
	// Tasks are the leaves of the plan, in their order.
	Tasks []Task
	Begin time.Time
	// Segmented is when it was known which segments are wanted; who evaluates sets it.
	Segmented time.Time
}

// WorkStats is what one piece of work came to, and how. Times are in milliseconds.
type WorkStats struct {
	// Leaf is its place among those of the plan.
	Leaf int `json:"leaf"`
	// Total is how many pieces the query has in all.
	Total int `json:"of"`
	// WorkID names it in the query; NodeID is the node that has done it.
	WorkID string `json:"work_id"`
	NodeID string `json:"node_id"`
	// Attempt is 1 on the first node that it was given to. Preferred: that node is the one that is to have the segments
	// at hand.
	Attempt   int  `json:"attempt"`
	Preferred bool `json:"preferred"`
	// Segments is how many were read: Hits of them were in the node's memory, DiskHits on its disk, and Fetched came from
	// the server, FetchedBytes large.
	Segments     int   `json:"segments"`
	Hits         int   `json:"hits"`
	DiskHits     int   `json:"disk_hits"`
	Fetched      int   `json:"fetched"`
	FetchedBytes int64 `json:"fetched_bytes"`
	// Samples is how many were evaluated, Series how many there are in the answer.
	Samples int64 `json:"samples"`
	Series  int   `json:"series"`
	// Bytes is the size of the file that the answer came in.
	Bytes int `json:"bytes"`
	// BeginMs is when the piece was given to a node, after the query's begin. It then waited for its turn, had its
	// segments read and the leaf evaluated, and the answer was brought and read; TookMs is all of that.
	BeginMs    float64 `json:"begin_ms"`
	WaitMs     float64 `json:"wait_ms"`
	ReadMs     float64 `json:"read_ms"`
	EvaluateMs float64 `json:"evaluate_ms"`
	TransferMs float64 `json:"transfer_ms"`
	TookMs     float64 `json:"took_ms"`
}

// Stages are where the time of a query went, in milliseconds.
type Stages struct {
	// PlanMs took the expression apart, SegmentsMs found the segments, LeavesMs had the leaves evaluated on nodes,
	// MergeMs put their answers together and evaluated the rest.
	PlanMs     float64 `json:"plan_ms"`
	SegmentsMs float64 `json:"segments_ms"`
	LeavesMs   float64 `json:"leaves_ms"`
	MergeMs    float64 `json:"merge_ms"`
	// FirstMs is when the first piece was there, after the query's begin.
	FirstMs float64 `json:"first_piece_ms"`
}

// Milliseconds is a duration as it is shown.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Matching are the segments whose runs can have series of a leaf.
func Matching(segments []Segment, l Leaf) []Segment {
	var some []Segment
	for _, s := range segments {
		if s.From <= l.To && s.To >= l.From && ofRun(s, l.Selector) {
			some = append(some, s)
		}
	}
	return some
}

// ofRun tells whether series of a segment can match, by the labels of its run.
func ofRun(s Segment, selector []*labels.Matcher) bool {
	return series.Matches(s.Labels, selector)
}
