// This part keeps the sampled rows of a plan sealed: they are values of the target's, and a run, which everybody reads,
// has them with it.

package postgres

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
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

// maxPools bounds what sealed pools are unpacked to.
const maxPools = 64 << 20

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
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("packing sampled rows: %w", err)
	}
	return s.keys.Seal(packed.Bytes(), poolsContext(resultID)), nil
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
	p, err := stored.Plan, error(nil)
	p.Pools, err = s.openPools(resultID, stored.PoolsSealed)
	p.PoolsUnreadable = err != nil // the rest of the run is read without the key, too
	return p, nil
}

func (s *Store) openPools(resultID, sealed string) (pools []engine.Pool, err error) {
	packed, err := s.keys.Open(sealed, poolsContext(resultID))
	if err != nil {
		return nil, fmt.Errorf("opening sampled rows: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking sampled rows: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxPools))
	if err == nil {
		err = json.Unmarshal(text, &pools)
	}
	return pools, err
}

// SealPools seals the sampled rows of runs that have them in plain, from before they were sealed or out of such a
// backup, and returns how many runs these were.
func (s *Store) SealPools(ctx context.Context) (sealed int, err error) {
	for {
		n, err := s.sealSomePools(ctx)
		sealed += n
		if err != nil || n == 0 {
			return sealed, dberr.Failed("sealing sampled rows", err)
		}
	}
}

func (s *Store) sealSomePools(ctx context.Context) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	type row struct {
		ID    string
		Pools []byte
	}
	rows, err := s.pool.Query(
		ctx,
		"SELECT test_id, plan -> 'pools' FROM test_results WHERE plan ? 'pools' LIMIT 20",
	)
	if err != nil {
		return 0, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return 0, err
	}
	for _, r := range list {
		var pools []engine.Pool
		if err := parse("sampled rows", r.Pools, &pools); err != nil {
			return 0, err
		}
		text, err := s.sealPools(r.ID, pools)
		if err != nil {
			return 0, err
		}
		if _, err := s.pool.Exec(
			ctx,
			`UPDATE test_results SET plan = plan - 'pools' || jsonb_build_object('pools_sealed', $2::text)
			WHERE test_id = $1 AND plan ? 'pools'`,
			r.ID,
			store.CleanText(text),
		); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}
