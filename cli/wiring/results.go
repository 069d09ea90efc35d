package wiring

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/storage/objects/s3store"
	"github.com/loadstone-db/loadstone/storage/results"
)

// defaultResultsCache is how many MB of results in S3 are kept on disk.
const defaultResultsCache = 2048

// openResults opens where executions are kept: a folder, or S3-compatible storage.
func (s *Services) openResults(ctx context.Context, flags StoreFlags) (err error) {
	if !s3store.IsAddress(flags.Results) {
		dir := flags.Results
		if scheme, _, ok := strings.Cut(dir, "://"); ok {
			return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("Results cannot be kept in %s://.", scheme),
				Hint: "Name a folder, or S3-compatible storage: --results s3://BUCKET/PREFIX."}
		}
		if dir == "" {
			dir = filepath.Join(s.DataDir, "results")
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return err
		}
		s.Results, err = results.Open(dir)
		s.ResultsAt = dir
		return err
	}
	address, err := s3store.ParseAddress(flags.Results)
	if err != nil {
		return err
	}
	cache := flags.ResultsCache
	if cache == 0 {
		cache = defaultResultsCache
	}
	kept, err := s3store.Open(ctx, address, s3store.Options{Log: s.Log,
		CacheDir: filepath.Join(s.DataDir, "results-cache"), CacheBytes: max(cache, 0) << 20,
		FreeSpace: func() error { return s.checkDiskSpace("Nothing is cached") }})
	if err != nil {
		return err
	}
	s.Results, s.ResultsAt = results.New(kept), kept.String()
	s.collectors = append(
		s.collectors,
		metrics.NewCache(func() metrics.CacheState { return metrics.CacheState(kept.Cache()) }),
	)
	return nil
}
