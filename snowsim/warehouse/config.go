package warehouse

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Config holds the numbers of the model. A zero field stands for its default.
// "docs" marks a number that Snowflake documents; all others are invented: they
// are plausible, make differences visible, and say nothing about Snowflake.
type Config struct {
	// Seed decides the latencies; the same requests in the same order get the same ones.
	Seed uint64
	// TimeScale divides every duration of the model, and multiplies its rates.
	TimeScale float64
	// Resume is how long a suspended warehouse takes to start, and a further cluster: 2 s.
	Resume time.Duration
	// ResumeInteractive is the same of an interactive warehouse: 5 s.
	ResumeInteractive time.Duration
	// ClusterPause is how long after the start of a cluster the standard policy waits with the next one: 20 s (docs).
	ClusterPause time.Duration
	// Check is how often the load is judged to stop clusters: 1 min (docs). The
	// standard policy stops one after 2 checks (docs: 2 to 3), the economy policy after 5 (docs: 5 to 6).
	Check time.Duration
	// EconomyLoad is how long a further cluster has to be busy for the economy policy to start it: 6 min (docs).
	EconomyLoad time.Duration
	// HybridRate is how many operations a second hybrid storage takes before it
	// throttles, HybridBurst how many at once: 8000 and 2000.
	HybridRate, HybridBurst float64
	// Profiles override what kinds of work take.
	Profiles map[Work]Profile
}

// Profile is what a kind of work takes, on an X-Small warehouse.
type Profile struct {
	// Compilation and Execution are medians; times are log-normal around them.
	Compilation, Execution time.Duration
	// Spread is the standard deviation of the logarithm.
	Spread float64
	// Share is the part of a slot that it takes. Snowflake documents that small
	// statements count as a fraction towards MAX_CONCURRENCY_LEVEL; which, it does not say.
	Share float64
	// Speedup is by how much one size more shortens the execution: 2 halves it, 1 has no effect.
	Speedup float64
}

const ms = time.Millisecond

// profiles are the defaults; all are invented.
var profiles = map[Work]Profile{
	{Standard, Lookup}: {60 * ms, 180 * ms, 0.35, 1, 1.2},
	{Standard, Scan}:   {60 * ms, 320 * ms, 0.35, 1, 1.7},
	{Standard, Write}:  {70 * ms, 450 * ms, 0.35, 1, 1.1},
	{Standard, Load}:   {70 * ms, 900 * ms, 0.25, 1, 1.7},

	// Hybrid tables answer lookups from a row store: the size of the warehouse does not matter.
	{Hybrid, Lookup}: {2 * ms, 7 * ms, 0.3, 1.0 / 16, 1},
	{Hybrid, Scan}:   {10 * ms, 120 * ms, 0.35, 0.5, 1.3},
	{Hybrid, Write}:  {2 * ms, 13 * ms, 0.3, 1.0 / 16, 1},
	{Hybrid, Load}:   {40 * ms, 700 * ms, 0.25, 1, 1.2},

	{Interactive, Lookup}: {8 * ms, 40 * ms, 0.25, 1.0 / 8, 1.3},
	{Interactive, Scan}:   {8 * ms, 80 * ms, 0.25, 1.0 / 8, 1.6},
	{Interactive, Write}:  {70 * ms, 500 * ms, 0.35, 1, 1.1},
	{Interactive, Load}:   {70 * ms, 900 * ms, 0.25, 1, 1.7},
}

func (c *Config) complete() {
	if !(c.TimeScale > 0) { // also when it is not a number
		c.TimeScale = 1
	}
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{{&c.Resume, 2 * time.Second}, {&c.ResumeInteractive, 5 * time.Second}, {&c.ClusterPause, 20 * time.Second},
		{&c.Check, time.Minute}, {&c.EconomyLoad, 6 * time.Minute}} {
		if *d.at <= 0 {
			*d.at = d.def
		}
		*d.at = max(time.Duration(float64(*d.at)/c.TimeScale), 1)
	}
	if !(c.HybridRate > 0) {
		c.HybridRate = 8000
	}
	if !(c.HybridBurst > 0) {
		c.HybridBurst = 2000
	}
	c.HybridRate *= c.TimeScale
}

// profile is what a kind of work takes on a type of warehouse.
func (c *Config) profile(w Work, houseType string) Profile {
	switch {
	case w.Table == Interactive && houseType != TypeInteractive:
		// Elsewhere an interactive table is read like any other.
		w.Table = Standard
	case w.Table == Standard && houseType == TypeInteractive:
		w.Table = Interactive // docs: the same performance
	case w.Table == Hybrid && houseType == TypeInteractive:
		w.Table = Standard // docs: not recommended, and slower than the other types
	}
	if p, ok := c.Profiles[w]; ok {
		return p
	}
	return profiles[w]
}

// Sizes are the names of sizes as SHOW WAREHOUSES has them, each twice the one before.
var Sizes = []string{"X-Small", "Small", "Medium", "Large", "X-Large", "2X-Large", "3X-Large", "4X-Large", "5X-Large",
	"6X-Large"}

// ParseSize reads a size as CREATE WAREHOUSE takes it: XSMALL, 'X-SMALL', XXLARGE, …
func ParseSize(text string) (string, error) {
	key := strings.NewReplacer("-", "", "_", "", "'", "", " ", "").Replace(strings.ToUpper(text))
	key = map[string]string{"XXLARGE": "2XLARGE", "XXXLARGE": "3XLARGE", "X2LARGE": "2XLARGE", "X3LARGE": "3XLARGE",
		"X4LARGE": "4XLARGE", "X5LARGE": "5XLARGE", "X6LARGE": "6XLARGE"}[key] + key
	for _, size := range Sizes {
		plain := strings.ReplaceAll(strings.ToUpper(size), "-", "")
		if strings.HasPrefix(key, plain) && (key == plain || strings.HasSuffix(key, "LARGE")) {
			return size, nil
		}
	}
	return "", fmt.Errorf("%q is no size of a warehouse", text)
}

// unitsPerSlot is the resolution of a slot's parts.
const unitsPerSlot = 64

func units(share float64) int {
	return max(int(math.Round(share*unitsPerSlot)), 1)
}

// Limits of a warehouse; the least AUTO_SUSPEND of interactive ones is documented.
const (
	maxClusters    = 10
	maxConcurrency = 32
	// docs: planned from 24 hours to this one for 2026-11-17 (bcr-2473).
	minInteractiveSuspend = time.Hour
	interactiveTimeout    = 5 * time.Second // docs: SELECT on an interactive warehouse
	defaultConcurrency    = 8               // docs: MAX_CONCURRENCY_LEVEL
	newGeneration         = "2"             // docs: what new standard warehouses are
	standardChecks        = 2
	economyChecks         = 5
	maxThrottleWait       = 10 * time.Second
)

// Defaults completes a spec the way CREATE WAREHOUSE does.
func Defaults(s Spec) Spec {
	if s.Type == "" {
		s.Type = TypeStandard
	}
	if s.Size == "" {
		s.Size = Sizes[0]
	}
	if s.MinClusters == 0 {
		s.MinClusters = 1
	}
	if s.MaxClusters == 0 {
		s.MaxClusters = s.MinClusters
	}
	if s.ScalingPolicy == "" {
		s.ScalingPolicy = PolicyStandard
	}
	if s.MaxConcurrency == 0 {
		s.MaxConcurrency = defaultConcurrency
	}
	if s.Type == TypeStandard && s.Generation == "" {
		s.Generation = newGeneration
	}
	if s.Type == TypeInteractive && s.StatementTimeout == 0 {
		s.StatementTimeout = interactiveTimeout
	}
	return s
}

// Check reports what is wrong with a complete spec.
func (m *Model) Check(s Spec) error {
	switch {
	case s.Name == "":
		return errors.New("a warehouse needs a name")
	case s.Type != TypeStandard && s.Type != TypeInteractive:
		return fmt.Errorf("%q is no type of a warehouse here; there are %s and %s", s.Type, TypeStandard, TypeInteractive)
	case s.Generation != "" && s.Generation != "1" && s.Generation != "2":
		return fmt.Errorf("%q is no generation of a warehouse", s.Generation)
	case s.Fallback != "" && s.Type != TypeInteractive:
		return errors.New("only an interactive warehouse has a FALLBACK_WAREHOUSE")
	case !slices.Contains(Sizes, s.Size):
		return fmt.Errorf("%q is no size of a warehouse", s.Size)
	case s.MinClusters < 1 || s.MinClusters > s.MaxClusters || s.MaxClusters > maxClusters:
		return fmt.Errorf("the clusters are not 1 <= MIN_CLUSTER_COUNT (%d) <= MAX_CLUSTER_COUNT (%d) <= %d", s.MinClusters,
			s.MaxClusters, maxClusters)
	case s.ScalingPolicy != PolicyStandard && s.ScalingPolicy != PolicyEconomy:
		return fmt.Errorf("%q is no scaling policy", s.ScalingPolicy)
	case s.MaxConcurrency < 1 || s.MaxConcurrency > maxConcurrency:
		return fmt.Errorf("MAX_CONCURRENCY_LEVEL is not between 1 and %d", maxConcurrency)
	case s.AutoSuspend < 0 || s.QueuedTimeout < 0 || s.StatementTimeout < 0:
		return errors.New("a time is negative")
	case s.Type == TypeInteractive && s.AutoSuspend > 0 && s.AutoSuspend < minInteractiveSuspend:
		return errors.New("AUTO_SUSPEND of an interactive warehouse is at least 3600 seconds")
	case s.Type == TypeInteractive && s.StatementTimeout > interactiveTimeout:
		return errors.New("STATEMENT_TIMEOUT_IN_SECONDS of an interactive warehouse is at most 5")
	}
	return nil
}
