package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// A rotation of the servers' key goes by these steps, each of which may be repeated after a crash:
//
//  1. the key is added to the file, or to the environment, and named in key_rotation.next_key;
//  2. every server that lives has said in server_keyrings that it has it;
//  3. key_rotation.sealing_key names it: servers seal with it from then on, and open with both;
//  4. every server has said so, and what is sealed under other keys is sealed under it, row by row;
//  5. nothing is sealed under another key any more: next_key is NULL again.

const (
	// KeyAnnounceInterval is how often a server reads its key file and says which keys it has.
	KeyAnnounceInterval = 5 * time.Second
	// serverLostAfter is how long a server that says nothing of its keys counts as alive.
	serverLostAfter = "30 seconds"
)

// preferSealingKey has the ring seal with the key that all servers seal with. The first server names its own, once it
// has proved that it is the one of what is sealed there.
func (s *Store) preferSealingKey(ctx context.Context) error {
	var sealing string
	err := s.pool.QueryRow(ctx, "SELECT sealing_key FROM key_rotation").Scan(&sealing)
	if errors.Is(err, pgx.ErrNoRows) {
		if err := s.proveKeys(ctx); err != nil {
			return err
		}
		sealing, err = s.NameSealingKey(ctx)
	}
	if err != nil {
		return dberr.Failed("reading which key seals", err)
	}
	if err := s.keys.Prefer(sealing); err != nil {
		return s.wrongKeys("The control store's secrets are sealed under the key "+sealing+", which this process lacks", err)
	}
	return nil
}

// NameSealingKey names the first key of the ring as the one that seals, where none is named yet. It proves nothing.
func (s *Store) NameSealingKey(ctx context.Context) (sealing string, err error) {
	err = s.pool.QueryRow(ctx, `INSERT INTO key_rotation AS r (sealing_key) VALUES ($1)
		ON CONFLICT (singleton) DO UPDATE SET sealing_key = r.sealing_key RETURNING sealing_key`, s.keys.FirstID()).
		Scan(&sealing)
	return sealing, dberr.Failed("naming the key that seals", err)
}

// errProven ends the search for a text that opens.
var errProven = errors.New("a sealed text opens")

// proveKeys is an error where nothing that is sealed in the store opens with the ring, or where its key has just been
// made and the store has tokens of before. A server with a stray key would otherwise make the key of hashes under it,
// and hash all tokens, sessions and links of version 16 again for good.
func (s *Store) proveKeys(ctx context.Context) error {
	unknown := map[string]bool{}
	for _, p := range sealedPlaces {
		err := p.each(ctx, s, func(rows []sealedRow) error {
			for _, r := range rows {
				if s.opensOneOf(r, p, unknown) {
					return errProven
				}
			}
			return nil
		})
		if errors.Is(err, errProven) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		return s.wrongKeys("Nothing that is sealed in the control store opens with the keys of this process: it is sealed "+
			"under "+strings.Join(slices.Sorted(maps.Keys(unknown)), ", "), keyring.ErrUnknownKey)
	}
	if !s.keys.Fresh() {
		return nil
	}
	var tokens bool
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM api_tokens WHERE hash_key = 0)
		OR EXISTS (SELECT FROM run_shares WHERE hash_key = 0) OR EXISTS (SELECT FROM node_tokens WHERE hash_key = 0)`).
		Scan(&tokens); err != nil {
		return dberr.Failed("looking for tokens of before", err)
	}
	if tokens {
		return s.wrongKeys("The control store has tokens of an earlier version, and the key of this process has just been "+
			"made", keyring.ErrUnknownKey)
	}
	return nil
}

// opensOneOf reports whether a text of the row opens; unknown gets the keys that are not here.
func (s *Store) opensOneOf(r sealedRow, p sealedPlace, unknown map[string]bool) bool {
	for _, t := range r.texts {
		_, err := s.keys.Open(t.text, p.bound(r.key, t.path))
		if err == nil {
			return true
		}
		if errors.Is(err, keyring.ErrUnknownKey) {
			unknown[t.id] = true
		}
	}
	return false
}

// wrongKeys is the error about a ring that is not that of the store. A key file that was made on this start is removed:
// the next start would take it for the key of before.
func (s *Store) wrongKeys(what string, cause error) error {
	discarded := s.keys.Discard()
	return &engine.Error{Code: engine.CodeInvalid, Cause: errors.Join(cause, discarded),
		Message: what + ". Nothing was changed. Keys in " + cmp.Or(s.keys.Path(), keyring.KeyEnv) + ": " +
			strings.Join(s.keys.IDs(), ", ") + ".",
		Hint: "Start it with the " + keyring.FileName + " of the other servers in the data directory (is the volume " +
			"mounted?), or with their " + keyring.KeyEnv + ". Where the key is lost for good, call `loadstone keys rotate " +
			"--lost-key`: what is sealed has to be entered again, and tokens, sessions and links are void."}
}

// AnnounceKeys reads the key file again, seals with the key that all servers seal with, and says which keys this
// server has, also where the one that seals is not among them.
func (s *Store) AnnounceKeys(ctx context.Context, server string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, unread := s.keys.Reload()
	var lacking error
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The lock has a switch to another key wait until this server has said that it still seals with the one before.
		var sealing string
		if err := tx.QueryRow(ctx, "SELECT sealing_key FROM key_rotation FOR SHARE").Scan(&sealing); err != nil {
			return err
		}
		lacking = s.keys.Prefer(sealing)
		_, err := tx.Exec(ctx, `INSERT INTO server_keyrings (server, keys, seen_at) VALUES ($1, $2, clock_timestamp())
			ON CONFLICT (server) DO UPDATE SET keys = excluded.keys, seen_at = excluded.seen_at`, server, s.keys.IDs())
		return err
	})
	if err != nil {
		return dberr.Failed("saying which keys this server has", err)
	}
	return errors.Join(unread, lacking, s.hashes.refresh(ctx))
}

// WithdrawKeys says that a server ends.
func (s *Store) WithdrawKeys(ctx context.Context, server string) error {
	_, err := s.pool.Exec(
		ctx,
		`WITH lost AS (DELETE FROM server_keyrings WHERE seen_at < clock_timestamp() - interval '1 day')
		DELETE FROM server_keyrings WHERE server = $1`,
		server,
	)
	return dberr.Failed("saying that this server ends", err)
}

// ServerKeys are the keys of one server, by their names. The one that it seals with comes first.
type ServerKeys struct {
	Server string
	Keys   []string
}

// KeyServers lists the servers that live, with their keys.
func (s *Store) KeyServers(ctx context.Context) ([]ServerKeys, error) {
	rows, err := s.pool.Query(ctx, `SELECT server, keys FROM server_keyrings
		WHERE seen_at > clock_timestamp() - $1::interval ORDER BY server`, serverLostAfter)
	if err != nil {
		return nil, dberr.Failed("listing the servers' keys", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ServerKeys])
	return list, dberr.Failed("listing the servers' keys", err)
}

// KeyRotation is what the store knows of the servers' key.
type KeyRotation struct {
	// Sealing is the key that seals, "" where no server has named one yet; Next is the one that is to, "" where none is
	// being replaced.
	Sealing, Next         string
	StartedAt, FinishedAt time.Time
	// Retired are keys that nothing is sealed under, and that nothing can be.
	Retired []string
}

// KeyRotation reads it.
func (s *Store) KeyRotation(ctx context.Context) (r KeyRotation, err error) {
	var started, finished *time.Time
	err = s.pool.QueryRow(ctx, `SELECT sealing_key, coalesce(next_key, ''), started_at, finished_at, retired_keys
		FROM key_rotation`).Scan(&r.Sealing, &r.Next, &started, &finished, &r.Retired)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, nil
	}
	r.StartedAt, r.FinishedAt = userInstant(started).Time, userInstant(finished).Time
	return r, dberr.Failed("reading the rotation of the key", err)
}

// BeginKeyRotation names the key that is to seal.
func (s *Store) BeginKeyRotation(ctx context.Context, next string) error {
	tag, err := s.pool.Exec(
		ctx,
		`UPDATE key_rotation SET next_key = $1, started_at = clock_timestamp(), finished_at = NULL,
		retired_keys = array_remove(retired_keys, $1) WHERE next_key IS NULL AND sealing_key <> $1`,
		next,
	)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.Conflict("A rotation of the key is under way, or this key seals already.",
			"Look at `loadstone keys status`.")
	}
	return dberr.Failed("beginning the rotation of the key", err)
}

// UseNextKey has all servers seal with the key that is to.
func (s *Store) UseNextKey(ctx context.Context) error {
	if _, err := s.pool.Exec(
		ctx,
		"UPDATE key_rotation SET sealing_key = next_key WHERE next_key IS NOT NULL",
	); err != nil {
		return dberr.Failed("changing the key that seals", err)
	}
	return s.preferSealingKey(ctx)
}

// errLeft takes back the end of a rotation.
var errLeft = errors.New("something is left under another key")

// EndKeyRotation retires the other keys of the ring: who writes what is sealed under them is refused from then on. It
// counts again first, when all who have written such texts are done: where some are left the rotation has not ended,
// unless that is allowed. Then their keys are not retired.
func (s *Store) EndKeyRotation(ctx context.Context, allowLeft bool) (left int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var sealing string
		// This waits for the writers, and has others wait: see refuse_retired_key.
		if err := tx.QueryRow(ctx, `UPDATE key_rotation SET next_key = NULL, finished_at = clock_timestamp()
			RETURNING sealing_key`).Scan(&sealing); err != nil {
			return err
		}
		counts, err := s.CountSealed(ctx)
		if err != nil {
			return err
		}
		under := map[string]int{}
		for _, c := range counts {
			under[c.Key] += c.Count
		}
		var retired []string
		for _, id := range s.keys.IDs() {
			switch {
			case id == sealing:
			case under[id] > 0:
				left += under[id]
			default:
				retired = append(retired, id)
			}
		}
		if left > 0 && !allowLeft {
			return errLeft
		}
		_, err = tx.Exec(ctx, `UPDATE key_rotation SET retired_keys =
			(SELECT array_agg(DISTINCT k) FROM unnest(retired_keys || $1::text[]) AS k WHERE k <> sealing_key)
			WHERE cardinality($1::text[]) > 0`, retired)
		return err
	})
	if errors.Is(err, errLeft) {
		return left, nil
	}
	return left, dberr.Failed("ending the rotation of the key", err)
}

// AbandonKeyRotation forgets the key that was to seal.
func (s *Store) AbandonKeyRotation(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, "UPDATE key_rotation SET next_key = NULL")
	return dberr.Failed("giving up the rotation of the key", err)
}

// keyRotationLock is the key of the advisory lock of whoever rotates.
const keyRotationLock = 0x6b657973 // "keys"

// LockKeyRotation keeps others from rotating until unlock, or until this process ends.
func (s *Store) LockKeyRotation(ctx context.Context) (unlock func(), err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, dberr.Failed("locking the rotation of the key", err)
	}
	var mine bool
	err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", keyRotationLock).Scan(&mine)
	if err == nil && !mine {
		err = dberr.Conflict("Another `loadstone keys rotate` is at work on this control store.", "Wait until it has ended.")
	}
	if err != nil {
		conn.Release()
		return nil, dberr.Failed("locking the rotation of the key", err)
	}
	return func() {
		// Closing the connection gives the lock back, whatever state it is in.
		_ = conn.Hijack().Close(context.WithoutCancel(ctx))
	}, nil
}

// sealedPlace is a column with sealed texts.
type sealedPlace struct {
	// Name is what users read.
	Name string
	// table, key and column say where, key as text; json is whether the texts stand in a JSON document.
	table, key, column string
	json               bool
	// bound is what a text is sealed for, by the key of its row and its path in the document.
	bound func(key string, path []string) string
}

// sealedPlaces are all of them. A test compares them with the calls that seal.
var sealedPlaces = []sealedPlace{
	{Name: "connections", table: "connections", key: "connection_id", column: "dsn_sealed",
		bound: func(key string, _ []string) string { return connectionContext(key) }},
	{Name: "templates", table: "test_templates", key: "template_id", column: "config", json: true, bound: documentBound},
	{Name: "runs", table: "run_status", key: "run_id", column: "scenario_config", json: true, bound: documentBound},
	{Name: "sampled rows", table: "test_results", key: "test_id", column: "plan", json: true,
		bound: func(key string, _ []string) string { return poolsContext(key) }},
	{Name: "settings and second factors", table: "server_settings", key: "setting_name", column: "secret_sealed",
		bound: func(key string, _ []string) string { return settingBound(key) }},
	{Name: "sinks", table: "sinks", key: "name", column: "config", json: true,
		bound: func(key string, path []string) string { return bound(key, path[0]) }},
	{Name: "the authority of nodes", table: "node_authority", key: "singleton::text", column: "key_sealed",
		bound: func(string, []string) string { return authorityContext }},
	{Name: "keys of hashes", table: "hash_keys", key: "hash_key::text", column: "key_sealed",
		bound: func(string, []string) string { return hashKeyContext }},
}

// documentBound is what the sealed texts of templates and runs are sealed for: they are copied from one to the other.
func documentBound(_ string, path []string) string {
	if path[len(path)-1] == "url_sealed" {
		return urlContext
	}
	return inlineContext
}

// SealedCount says how many texts of a place are sealed under a key.
type SealedCount struct {
	Place, Key string
	Count      int
}

// CountSealed counts what is sealed, by place and key.
func (s *Store) CountSealed(ctx context.Context) (counts []SealedCount, err error) {
	for _, p := range sealedPlaces {
		of := map[string]int{}
		err := p.each(ctx, s, func(rows []sealedRow) error {
			for _, r := range rows {
				for _, t := range r.texts {
					of[t.id]++
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for id, n := range of {
			counts = append(counts, SealedCount{p.Name, id, n})
		}
	}
	slices.SortFunc(counts, func(a, b SealedCount) int { return strings.Compare(a.Place+a.Key, b.Place+b.Key) })
	return counts, nil
}

// Resealed is what became of sealed texts.
type Resealed struct {
	Place string
	// Done were sealed under the key that seals now; Changed have been written by somebody meanwhile, and are looked at
	// again by the next call.
	Done, Changed int
	// Failed names rows whose texts do not open: their key is not here, or they are damaged.
	Failed []string
}

// Reseal seals everything that is sealed under another key under the one that seals now. It tells after each batch of
// rows; a call after a crash goes on.
func (s *Store) Reseal(ctx context.Context, tell func(Resealed)) (all []Resealed, err error) {
	current := s.keys.IDs()[0]
	for _, p := range sealedPlaces {
		out := Resealed{Place: p.Name}
		err := p.each(ctx, s, func(rows []sealedRow) error {
			var batch pgx.Batch
			for _, r := range rows {
				text, err := r.reseal(s.keys, p.bound, current)
				switch {
				case err != nil:
					out.Failed = append(out.Failed, r.key)
				case text != r.text:
					batch.Queue(p.update(), r.key, text, r.text).Exec(func(tag pgconn.CommandTag) error {
						out.Done += int(tag.RowsAffected())
						out.Changed += 1 - int(tag.RowsAffected())
						return nil
					})
				}
			}
			if batch.Len() == 0 {
				return nil
			}
			if err := s.pool.SendBatch(ctx, &batch).Close(); err != nil {
				return dberr.Failed("sealing "+p.Name+" again", err)
			}
			tell(out)
			return nil
		})
		if err != nil {
			return all, err
		}
		all = append(all, out)
	}
	return all, nil
}

// CheckKeys is an error where secrets are sealed under a key that is not here.
func (s *Store) CheckKeys(counts []SealedCount) error {
	have, where := s.keys.IDs(), cmp.Or(s.keys.Path(), keyring.KeyEnv)
	lost := map[string]int{}
	for _, c := range counts {
		if !slices.Contains(have, c.Key) {
			lost[c.Key] += c.Count
		}
	}
	if len(lost) == 0 {
		return nil
	}
	var what []string
	for id, n := range lost {
		what = append(what, fmt.Sprintf("%d under the key %s", n, id))
	}
	slices.Sort(what)
	return &engine.Error{Code: engine.CodeInvalid, Cause: keyring.ErrUnknownKey,
		Message: "Secrets of this control store are sealed under a key that is not in " + where + ": " +
			strings.Join(what, ", ") + ". There are the keys " + strings.Join(have, ", ") + ".",
		Hint: "Add the missing key, as a line of its own, or in " + keyring.PreviousKeyEnv + ". Where it is lost for good, " +
			"--lost-key goes on without those secrets: they have to be entered again."}
}
