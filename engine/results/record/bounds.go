package record

import (
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// Bounds are what the footer says of a row group, so that one which holds nothing that is wanted is not read. What
// the footer does not say is unbounded.
type Bounds struct {
	// DueFrom and DueTo are nanoseconds since the epoch, ElapsedFrom and ElapsedTo milliseconds; all are values of rows.
	DueFrom, DueTo         int64
	ElapsedFrom, ElapsedTo float64
	// NoErrors says that no row has an error.
	NoErrors bool
}

// EndFrom is when a row ended at the earliest, in nanoseconds since the epoch.
func (b Bounds) EndFrom() int64 {
	if b.DueFrom == math.MinInt64 {
		return b.DueFrom
	}
	return b.DueFrom + int64(math.Floor(b.ElapsedFrom*1e6))
}

// EndTo is when a row ended at the latest.
func (b Bounds) EndTo() int64 {
	if b.DueTo == math.MaxInt64 || math.IsInf(b.ElapsedTo, 1) {
		return math.MaxInt64
	}
	return b.DueTo + int64(math.Ceil(b.ElapsedTo*1e6))
}

// Bounds returns those of a row group.
func (p *Part) Bounds(group int) Bounds {
	b := Bounds{DueFrom: math.MinInt64, DueTo: math.MaxInt64, ElapsedTo: math.Inf(1)}
	if lo, hi, ok := eightBytes(p.statistics(group, ColDueAt)); ok {
		b.DueFrom, b.DueTo = int64(lo), int64(hi)
	}
	if lo, hi, ok := eightBytes(p.statistics(group, ColAppElapsedMs)); ok {
		b.ElapsedFrom, b.ElapsedTo = math.Float64frombits(lo), math.Float64frombits(hi)
	}
	b.NoErrors = p.statistics(group, ColErrorClass).NullCount == int64(p.Rows(group))
	return b
}

func (p *Part) statistics(group int, col Column) (s format.Statistics) {
	groups := p.pq.Metadata().RowGroups
	if group >= len(groups) || p.cols[col] >= len(groups[group].Columns) {
		return s
	}
	return groups[group].Columns[p.cols[col]].MetaData.Statistics
}

func eightBytes(s format.Statistics) (lo, hi uint64, ok bool) {
	if len(s.MinValue) != 8 || len(s.MaxValue) != 8 {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(s.MinValue), binary.LittleEndian.Uint64(s.MaxValue), true
}

// Nanoseconds is a duration of a part, in milliseconds, as the whole nanoseconds that it was.
func Nanoseconds(ms float64) int64 { return int64(math.Round(ms * 1e6)) }
