// This part keeps the sampled rows of a plan sealed: they are values of the target's, and a run, which everybody reads,
// has them with it.

package postgres

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// storedPlan is a plan as it is stored. Pools are those of a run from before they were sealed.
type storedPlan struct {
	*engine.Plan
	Pools       []engine.Pool `json:"pools,omitempty"`
	PoolsSealed string        `json:"pools_sealed,omitempty"`
}

func poolsContext(resultID string) string { return "pools:" + resultID }

// maxPools bounds sampled rows, as JSON and as they are sealed: no text in a document of Postgres may be longer.
const maxPools = 1<<28 - 1

// tooLargeError refuses sampled rows that could not be stored.
func tooLargeError(limit int) error {
	return engine.InvalidField("target", fmt.Sprintf("has sampled rows of more than %d MiB, which a run cannot keep",
		(limit+1)>>20), "let the run take fewer rows of its tables, or none of their large columns")
}

// sealPlan writes a plan as it is stored.
func (s *Store) sealPlan(into *[]byte, resultID string, p *engine.Plan) (err error) {
	if p == nil {
		return nil
	}
	stored := storedPlan{Plan: p}
	if p.Pools != nil {
		if stored.PoolsSealed, err = s.sealPools(resultID, p.Pools); err != nil {
			return err
		}
	}
	*into, err = document("plan", stored)
	return err
}

func (s *Store) sealPools(resultID string, pools []engine.Pool) (string, error) {
	text, err := document("sampled rows", pools)
	if err != nil {
		return "", err
	}
	packed, err := pack(text, maxPools)
	if err != nil {
		return "", err
	}
	sealed := s.keys.Seal(packed, poolsContext(resultID))
	if len(sealed) > maxPools {
		return "", tooLargeError(maxPools)
	}
	return sealed, nil
}

// pack is what unpack takes apart again, of no more than limit bytes.
func pack(text []byte, limit int) ([]byte, error) {
	if len(text) > limit {
		return nil, tooLargeError(limit)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("packing sampled rows: %w", err)
	}
	return packed.Bytes(), nil
}

func unpack(packed []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking sampled rows: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = tooLargeError(limit)
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking sampled rows: %w", err)
	}
	return text, nil
}

// readPlan reads a plan as it is stored; its pools with open, where they can be opened.
func (s *Store) readPlan(resultID string, text []byte, open bool) (*engine.Plan, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // the run has none yet
	}
	stored := storedPlan{Plan: &engine.Plan{}}
	if err := parse("plan", text, &stored); err != nil {
		return nil, err
	}
	stored.Plan.Pools = stored.Pools
	if !open {
		stored.Plan.Pools = nil
	}
	if stored.PoolsSealed == "" || !open {
		return stored.Plan, nil
	}
	// The rest of the run is read without them, too.
	packed, err := s.keys.Open(stored.PoolsSealed, poolsContext(resultID))
	if err != nil {
		stored.PoolsUnreadable = "were sealed under a key that this server does not have"
		return stored.Plan, nil //nolint:nilerr // it stands in the plan
	}
	text, err = unpack(packed, maxPools)
	if err == nil {
		err = json.Unmarshal(text, &stored.Plan.Pools)
	}
	if err != nil {
		stored.Plan.Pools, stored.PoolsUnreadable = nil, "are damaged, or too large to be read"
	}
	return stored.Plan, nil
}

// SealPools seals the sampled rows of runs that have them in plain, from before they were sealed or out of such a
// backup, and returns how many runs these were. Those that cannot be sealed keep no other from it; the error has them.
func (s *Store) SealPools(ctx context.Context) (sealed int, err error) {
	var wrong []error
	for last := ""; ; {
		page, err := s.plainPools(ctx, last)
		if err != nil || len(page) == 0 {
			return sealed, dberr.Failed("sealing sampled rows", errors.Join(append(wrong, err)...))
		}
		for _, id := range page {
			if err := s.sealPoolsOf(ctx, id); err != nil {
				wrong = append(wrong, fmt.Errorf("run %s: %w", id, err))
				continue
			}
			sealed++
		}
		last = page[len(page)-1]
	}
}

// plainPools lists some runs behind the last one that have sampled rows in plain.
func (s *Store) plainPools(ctx context.Context, last string) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT test_id FROM test_results WHERE plan ? 'pools' AND test_id > $1 "+
		"ORDER BY test_id LIMIT 100", last)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (s *Store) sealPoolsOf(ctx context.Context, id string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var plain []byte
	err := s.pool.QueryRow(ctx, "SELECT plan -> 'pools' FROM test_results WHERE test_id = $1", id).Scan(&plain)
	if err != nil || plain == nil {
		return err // another server was faster
	}
	var pools []engine.Pool
	if err := parse("sampled rows", plain, &pools); err != nil {
		return err
	}
	text, err := s.sealPools(id, pools)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(
		ctx,
		`UPDATE test_results SET plan = plan - 'pools' || jsonb_build_object('pools_sealed', $2::text)
		WHERE test_id = $1 AND plan ? 'pools'`,
		id,
		store.CleanText(text),
	)
	return err
}
