package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
)

// rows reads all rows of a query.
func rows[T any](ctx context.Context, tx pgx.Tx, sql string, scan func(row pgx.CollectableRow) (T, error),
	args ...any) ([]T, error) {
	all, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(all, scan)
}

// read reads all tables, in the order in which things were created; of queries those that are needed.
func (r *CatalogStore) read(ctx context.Context, tx pgx.Tx, needs catalog.Scope) (c catalog.Contents, err error) {
	err = tx.QueryRow(ctx, "SELECT last_source_id, last_query_id FROM catalog_revision").Scan(&c.LastSourceID,
		&c.LastQueryID)
	if err != nil {
		return c, err
	}
	c.Workers, err = rows(ctx, tx, `SELECT host_name, grpc_port, data_port, capacity, state, coalesce((SELECT
		array_agg(dst_host_name ORDER BY dst_host_name) FROM network_links WHERE src_host_name = host_name), '{}')
		FROM workers ORDER BY host_name`, func(row pgx.CollectableRow) (w catalog.Worker, err error) {
		return w, row.Scan(&w.Host, &w.GRPCPort, &w.DataPort, &w.Slots, &w.State, &w.Peers)
	})
	if err != nil {
		return c, err
	}
	c.Logical, err = rows(ctx, tx, "SELECT name, schema FROM logical_sources ORDER BY name",
		func(row pgx.CollectableRow) (s catalog.LogicalSource, err error) {
			var schema []byte
			if err = row.Scan(&s.Name, &schema); err == nil {
				s.Columns, err = catalog.UnmarshalSchema(schema)
			}
			return s, err
		})
	if err != nil {
		return c, err
	}
	c.Physical, err = rows(ctx, tx, `SELECT id, logical_source, coalesce(placement, ''), source_type, source_config,
		parser_config FROM physical_sources ORDER BY id`,
		func(row pgx.CollectableRow) (p catalog.PhysicalSource, err error) {
			var own, parser []byte
			if err = row.Scan(&p.ID, &p.Logical, &p.Placement, &p.Type, &own, &parser); err == nil {
				p.Config, err = catalog.UnmarshalConfig(own, parser)
			}
			return p, err
		})
	if err != nil {
		return c, err
	}
	c.Sinks, err = rows(
		ctx,
		tx,
		`SELECT name, schema, coalesce(placement, ''), sink_type, config FROM sinks ORDER BY name`,
		func(row pgx.CollectableRow) (s catalog.Sink, err error) {
			var schema, config []byte
			if err = row.Scan(&s.Name, &schema, &s.Placement, &s.Type, &config); err != nil {
				return s, err
			}
			if s.Columns, err = catalog.UnmarshalSchema(schema); err == nil {
				s.Config, err = catalog.UnmarshalConfig(config)
			}
			r.open(s)
			return s, err
		},
	)
	if err != nil {
		return c, err
	}
	return c, readQueries(ctx, tx, needs, &c)
}

// taken are the slots of workers that queries take which were not read.
func taken(ctx context.Context, tx pgx.Tx, queries []int64) (map[string]int64, error) {
	type slots struct {
		host string
		n    int64
	}
	// As catalog.Query.Holds has it.
	all, err := rows(ctx, tx, `SELECT f.host_name, count(*) FROM query_fragments f JOIN queries q ON q.id = f.query_id
		WHERE q.id <> ALL ($1) AND q.execution_state NOT IN ('STOPPED', 'TERMINATED', 'FAILED')
		AND (q.desired_state = 'RUNNING' AND q.execution_state <> 'TERMINATING'
			OR f.execution_state NOT IN ('STOPPED', 'TERMINATED', 'FAILED'))
		GROUP BY f.host_name`,
		func(row pgx.CollectableRow) (s slots, err error) { return s, row.Scan(&s.host, &s.n) }, queries)
	hosts := map[string]int64{}
	for _, s := range all {
		hosts[s.host] = s.n
	}
	return hosts, err
}

// unread is what queries take that were not read.
func unread(ctx context.Context, tx pgx.Tx, queries []int64) (u catalog.Usage, err error) {
	u.ByUser = map[string]int64{}
	_, err = rows(ctx, tx, `SELECT coalesce(nullif(created_by_id, ''), created_by), count(*),
		sum(octet_length(name) + octet_length(statement) + coalesce((SELECT sum(octet_length(
			array_to_string(ARRAY(SELECT jsonb_array_elements_text(f.plan)), E'\n'))) FROM query_fragments f
			WHERE f.query_id = q.id), 0))::bigint FROM queries q WHERE id <> ALL ($1) GROUP BY 1`,
		func(row pgx.CollectableRow) (none struct{}, err error) {
			var user string
			var n, bytes int64
			if err = row.Scan(&user, &n, &bytes); err == nil {
				u.Queries, u.Bytes, u.ByUser[user] = u.Queries+n, u.Bytes+bytes, n
			}
			return none, err
		}, queries)
	return u, err
}

func readQueries(ctx context.Context, tx pgx.Tx, needs catalog.Scope, c *catalog.Contents) (err error) {
	names := []string{}
	for _, n := range needs.Names {
		names = append(names, strings.ToLower(n))
	}
	c.Queries, err = rows(ctx, tx, `SELECT q.id, q.name, q.statement, q.execution_state, q.desired_state, q.graceful,
		q.state_since, q.failure, q.created_by, q.created_at, coalesce(q.owner, ''), q.epoch, q.revision, coalesce(s.sink_name, ''), q.created_by_id,
		q.confirmed,
		coalesce((SELECT array_agg(physical_source_id ORDER BY 1) FROM query_physical_sources p WHERE p.query_id = q.id), '{}')
		FROM queries q LEFT JOIN query_sinks s ON s.query_id = q.id WHERE $1 OR lower(q.name) = ANY ($2)
		OR lower(q.name) >= 'query-' AND lower(q.name) < 'query.' AND q.name <> 'query-' || q.id ORDER BY q.id`,
		func(row pgx.CollectableRow) (q catalog.Query, err error) {
			err = row.Scan(&q.ID, &q.Name, &q.Statement, &q.State, &q.Desired, &q.Graceful, &q.Since, &q.Failure, &q.CreatedBy,
				&q.CreatedAt, &q.Owner, &q.Epoch, &q.Revision, &q.Sink, &q.CreatedByID, &q.Confirmed, &q.Sources)
			q.Since, q.CreatedAt, q.Confirmed = q.Since.UTC(), q.CreatedAt.UTC(), append([]string(nil), q.Confirmed...)
			return q, err
		}, needs.All, names)
	if err != nil {
		return err
	}
	ids := make([]int64, len(c.Queries))
	for i, q := range c.Queries {
		ids[i] = q.ID
	}
	if !needs.All {
		if c.UsedSlots, err = taken(ctx, tx, ids); err != nil {
			return err
		}
		if c.Unread, err = unread(ctx, tx, ids); err != nil {
			return err
		}
	}
	type fragment struct {
		query int64
		catalog.Fragment
	}
	fragments, err := rows(
		ctx,
		tx,
		`SELECT query_id, host_name, plan, execution_state, attempts, retry_at, failure, terminal
		FROM query_fragments WHERE $1 OR query_id = ANY ($2) ORDER BY query_id, host_name`,
		func(row pgx.CollectableRow) (f fragment, err error) {
			var retry *time.Time
			var plan []byte
			if err = row.Scan(&f.query, &f.Host, &plan, &f.State, &f.Attempts, &retry, &f.Failure, &f.Terminal); err != nil {
				return f, err
			}
			if retry != nil {
				f.RetryAt = retry.UTC()
			}
			var lines []string
			err = json.Unmarshal(plan, &lines)
			f.Plan = strings.Join(lines, "\n")
			return f, err
		},
		needs.All,
		ids,
	)
	if err != nil {
		return err
	}
	for _, f := range fragments {
		if i, there := slices.BinarySearchFunc(c.Queries, f.query, func(q catalog.Query, id int64) int {
			return int(q.ID - id)
		}); there {
			c.Queries[i].Fragments = append(c.Queries[i].Fragments, f.Fragment)
		}
	}
	return nil
}

// lacks returns what of a is not in b, by name.
func lacks[T any](a, b []T, name func(T) string) (missing []T) {
	there := map[string]bool{}
	for _, x := range b {
		there[name(x)] = true
	}
	for _, x := range a {
		if !there[name(x)] {
			missing = append(missing, x)
		}
	}
	return missing
}

// What is made anew under its name is another one.
func workerName(w catalog.Worker) string           { return fmt.Sprintf("%q %+v", w.Host, w) }
func logicalName(s catalog.LogicalSource) string   { return fmt.Sprintf("%q %+v", s.Name, s) }
func physicalName(p catalog.PhysicalSource) string { return fmt.Sprint(p.ID) }
func sinkName(s catalog.Sink) string               { return fmt.Sprintf("%q %+v", s.Name, s) }
func queryName(q catalog.Query) string             { return fmt.Sprint(q.ID) }
func fragmentName(f catalog.Fragment) string       { return f.Host }

// connected refuses new sinks whose connection was deleted after it was judged, and keeps those of the others from
// being deleted before the change is kept.
func connected(ctx context.Context, tx pgx.Tx, was, is catalog.Contents) (refused, err error) {
	for _, s := range lacks(is.Sinks, was.Sinks, sinkName) {
		id := s.Config.String(catalog.ConnectionID)
		if id == "" {
			continue
		}
		tag, err := tx.Exec(ctx, "SELECT FROM connections WHERE connection_id = $1 FOR KEY SHARE", id)
		if err != nil {
			return nil, err
		}
		if tag.RowsAffected() == 0 {
			return catalog.ConnectionDeleted(s), nil
		}
	}
	return nil, nil
}

// write writes the difference. What goes is taken out first, from who refers to what is referred to; what comes is put
// in the other way round.
func (r *CatalogStore) write(ctx context.Context, tx pgx.Tx, was, is catalog.Contents) error {
	b := &pgx.Batch{}
	for _, q := range lacks(was.Queries, is.Queries, queryName) {
		b.Queue("DELETE FROM queries WHERE id = $1", q.ID)
	}
	for _, q := range relinked(was, is) {
		b.Queue("DELETE FROM query_sinks WHERE query_id = $1", q.ID)
		b.Queue("DELETE FROM query_physical_sources WHERE query_id = $1", q.ID)
	}
	// What is there under its name is changed in its row, to which others may refer.
	for _, s := range lacks(was.Sinks, is.Sinks, func(s catalog.Sink) string { return s.Name }) {
		b.Queue("DELETE FROM sinks WHERE name = $1", s.Name)
	}
	for _, p := range lacks(was.Physical, is.Physical, physicalName) {
		b.Queue("DELETE FROM physical_sources WHERE id = $1", p.ID)
	}
	for _, s := range lacks(was.Logical, is.Logical, func(s catalog.LogicalSource) string { return s.Name }) {
		b.Queue("DELETE FROM logical_sources WHERE name = $1", s.Name)
	}
	for _, w := range lacks(was.Workers, is.Workers, func(w catalog.Worker) string { return w.Host }) {
		b.Queue("DELETE FROM workers WHERE host_name = $1", w.Host)
	}
	if err := r.add(b, was, is); err != nil {
		return err
	}
	if b.Len() == 0 {
		return nil
	}
	b.Queue(`UPDATE catalog_revision SET revision = revision + 1, last_source_id = $1, last_query_id = $2`,
		is.LastSourceID, is.LastQueryID)
	b.Queue("SELECT pg_notify($1, '')", catalogChannel)
	return tx.SendBatch(ctx, b).Close()
}

// relinked are the queries whose sink or sources are others now.
func relinked(was, is catalog.Contents) (list []catalog.Query) {
	before := map[int64]catalog.Query{}
	for _, q := range was.Queries {
		before[q.ID] = q
	}
	for _, q := range is.Queries {
		if old, there := before[q.ID]; there && (old.Sink != q.Sink || !slices.Equal(old.Sources, q.Sources)) {
			list = append(list, q)
		}
	}
	return list
}

func (r *CatalogStore) add(b *pgx.Batch, was, is catalog.Contents) error {
	for _, w := range lacks(is.Workers, was.Workers, workerName) {
		b.Queue(`INSERT INTO workers (host_name, grpc_port, data_port, capacity, state) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (host_name) DO UPDATE SET grpc_port = excluded.grpc_port, data_port = excluded.data_port,
			capacity = excluded.capacity`, w.Host, w.GRPCPort, w.DataPort, w.Slots, string(w.State))
		for _, p := range w.Peers {
			b.Queue(`INSERT INTO network_links SELECT $1, host_name FROM workers WHERE lower(host_name) = lower($2)
				ON CONFLICT DO NOTHING`, w.Host, p)
		}
	}
	for _, s := range lacks(is.Logical, was.Logical, logicalName) {
		schema, err := catalog.MarshalSchema(s.Columns)
		if err != nil {
			return err
		}
		b.Queue(`INSERT INTO logical_sources VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET schema = excluded.schema`, s.Name, schema)
	}
	for _, p := range lacks(is.Physical, was.Physical, physicalName) {
		own, parser, err := catalog.MarshalConfig(p.Config)
		if err != nil {
			return err
		}
		b.Queue(`INSERT INTO physical_sources VALUES ($1, $2, (SELECT host_name FROM workers
			WHERE lower(host_name) = lower($3)), $4, $5, $6)`, p.ID, p.Logical, p.Placement, p.Type, own, parser)
	}
	for _, s := range lacks(is.Sinks, was.Sinks, sinkName) {
		schema, err := catalog.MarshalSchema(s.Columns)
		if err != nil {
			return err
		}
		config, _, err := catalog.MarshalConfig(r.sealed(s))
		if err != nil {
			return err
		}
		b.Queue(`INSERT INTO sinks VALUES ($1, $2, (SELECT host_name FROM workers WHERE lower(host_name) = lower($3)), $4,
			$5) ON CONFLICT (name) DO UPDATE SET schema = excluded.schema, placement = excluded.placement,
			sink_type = excluded.sink_type, config = excluded.config`, s.Name, schema, s.Placement, s.Type, config)
	}
	before := map[int64]catalog.Query{}
	for _, q := range was.Queries {
		before[q.ID] = q
	}
	for _, q := range is.Queries {
		if old, there := before[q.ID]; !there {
			if err := addQuery(b, q); err != nil {
				return err
			}
		} else if err := changeQuery(b, old, q); err != nil {
			return err
		}
	}
	for _, q := range relinked(was, is) {
		linkQuery(b, q)
	}
	return nil
}

// linkQuery adds what a query reads and where it writes. One that was dropped may have neither any more.
func linkQuery(b *pgx.Batch, q catalog.Query) {
	if q.Sink != "" {
		b.Queue("INSERT INTO query_sinks VALUES ($1, $2) ON CONFLICT DO NOTHING", q.ID, q.Sink)
	}
	for _, id := range q.Sources {
		b.Queue("INSERT INTO query_physical_sources VALUES ($1, $2) ON CONFLICT DO NOTHING", q.ID, id)
	}
}

func addQuery(b *pgx.Batch, q catalog.Query) error {
	b.Queue(`INSERT INTO queries (id, name, statement, execution_state, desired_state, graceful, state_since, failure,
		created_by, created_at, created_by_id, confirmed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
		coalesce($12::text[], '{}'))`, q.ID, q.Name, q.Statement, string(q.State), string(q.Desired), q.Graceful, q.Since,
		q.Failure, q.CreatedBy, q.CreatedAt, q.CreatedByID, q.Confirmed)
	linkQuery(b, q)
	for _, f := range q.Fragments {
		if err := addFragment(b, q, f); err != nil {
			return err
		}
	}
	return nil
}

// addFragment adds one, or changes what it is to do.
func addFragment(b *pgx.Batch, q catalog.Query, f catalog.Fragment) error {
	plan, err := json.Marshal(strings.Split(strings.TrimSuffix(f.Plan, "\n"), "\n"))
	if err != nil {
		return err
	}
	b.Queue(`INSERT INTO query_fragments (query_id, host_name, plan, execution_state, desired_state, attempts)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (query_id, host_name) DO UPDATE
		SET plan = excluded.plan, attempts = excluded.attempts`, q.ID, f.Host, plan, string(f.State), desiredFragments(q), f.Attempts)
	return nil
}

// changeQuery writes what is desired of a query, and which workers it has.
func changeQuery(b *pgx.Batch, was, is catalog.Query) error {
	if was.Revision != is.Revision {
		b.Queue(`UPDATE queries SET desired_state = $2, graceful = $3, revision = $4, failure = $5 WHERE id = $1`, is.ID,
			string(is.Desired), is.Graceful, is.Revision, store.CleanText(is.Failure))
		b.Queue("UPDATE query_fragments SET desired_state = $2 WHERE query_id = $1", is.ID, desiredFragments(is))
	}
	if was.State != is.State || !was.CreatedAt.Equal(is.CreatedAt) { // it is resumed or replaced, as whoever has said so
		b.Queue(`UPDATE queries SET execution_state = $2, state_since = $3, created_by = $4, created_by_id = $5,
			confirmed = coalesce($6::text[], '{}'), name = $7, statement = $8, created_at = $9 WHERE id = $1`, is.ID,
			string(is.State), is.Since, is.CreatedBy, is.CreatedByID, is.Confirmed, is.Name, is.Statement, is.CreatedAt)
		b.Queue(`UPDATE query_fragments SET execution_state = 'REGISTERED', retry_at = NULL, failure = '', terminal = false
			WHERE query_id = $1`, is.ID)
	}
	for _, f := range lacks(was.Fragments, is.Fragments, fragmentName) {
		b.Queue("DELETE FROM query_fragments WHERE query_id = $1 AND host_name = $2", is.ID, f.Host)
	}
	plans := func(f catalog.Fragment) string {
		return fmt.Sprintf("%q %d %s", f.Host, f.Attempts, strings.TrimSuffix(f.Plan, "\n"))
	}
	for _, f := range lacks(is.Fragments, was.Fragments, plans) {
		if err := addFragment(b, is, f); err != nil {
			return err
		}
	}
	return nil
}
