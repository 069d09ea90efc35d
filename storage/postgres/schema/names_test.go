package schema_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// victim is the id of a connection after which another one is named.
const victim = "11111111-2222-4333-8444-555555555555"

// planted are rows that version 16 has let be. A template and a run name the connection by the name that it has.
const planted = `
	INSERT INTO connections (connection_id, connection_name, driver, dsn_redacted, dsn_sealed) VALUES
		('` + victim + `', 'shop', 'postgres', 'x', 'x'),
		('99999999-2222-4333-8444-555555555555', '` + victim + `', 'postgres', 'x', 'x'),
		('88888888-2222-4333-8444-555555555555', 'renamed-` + victim + `', 'postgres', 'x', 'x');
	INSERT INTO users (user_id, user_name, role) VALUES ('u2', 'AAAAAAAA222243338444555555555555', 'operator'),
		('u4', repeat('ab', 32), 'viewer'), ('u5', repeat('ab', 31) || 'cd', 'viewer');
	INSERT INTO test_templates (template_id, template_name, config, source, created_by) VALUES
		('t1', 'by name', '{"target":{"connection":"` + victim + `"}}', 'connection: ` + victim + `', 'AAAAAAAA222243338444555555555555'),
		('t2', 'matrix', '{"matrix":{"targets":[{"label":"a","connection":"shop"},{"label":"b","connection":"` + victim + `"},
			{"label":"c","connection":{"driver":"postgres","dsn":"x"}}]}}', '', 'ada'),
		('t3', '{11111111222243338444555555555555}', '{"target":{"connection":"nowhere"}}', '', 'ada');
	INSERT INTO run_status (run_id, test_id, scenario_config, created_by)
		VALUES ('r2', 'r2', '{"target":{"connection":"` + victim + `"}}', 'AAAAAAAA222243338444555555555555');`

// TestNamesThatLookLikeIDsAreRenamed: after the upgrade no name looks like an id, what was named is what was named
// before, and a second pass changes nothing. Rows of today cannot have such a name.
func TestNamesThatLookLikeIDsAreRenamed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).NewDatabase(t)
	conn := connect(t, dsn)
	exec(t, conn, version16+sinceRenamed)
	exec(t, conn, somebody)
	exec(t, conn, planted)
	if err := schema.Apply(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	const is = `SELECT string_agg(line, E'\n') FROM (
		SELECT connection_id || ' ' || connection_name FROM connections WHERE looks_like_id(connection_id)
		UNION ALL SELECT user_name FROM users WHERE user_id IN ('u2', 'u4', 'u5')
		UNION ALL SELECT template_name || config || source || created_by FROM test_templates
		UNION ALL SELECT scenario_config || created_by FROM run_status WHERE run_id = 'r2' ORDER BY 1) AS all_of_them (line)`
	settled := one[string](t, conn, is)
	for _, line := range []string{
		victim + " shop",
		"99999999-2222-4333-8444-555555555555 renamed-" + victim + "-2",
		"88888888-2222-4333-8444-555555555555 renamed-" + victim,
		"renamed-AAAAAAAA222243338444555555555555",
		"renamed-" + strings.Repeat("ab", 20) + "\n", "renamed-" + strings.Repeat("ab", 20) + "-2\n",
		`by name{"target": {"connection": "renamed-` + victim + `-2", "connection_id": "99999999-2222-4333-8444-555555555555"}}` +
			`connection: renamed-` + victim + `-2renamed-AAAAAAAA222243338444555555555555`,
		`{"label": "a", "connection": "shop", "connection_id": "` + victim + `"}, {"label": "b", "connection": "renamed-` +
			victim + `-2", "connection_id": "99999999-2222-4333-8444-555555555555"}, {"label": "c", "connection": {"dsn": "x", "driver": "postgres"}}`,
		`renamed-{11111111222243338444555555555555}{"target": {"connection": "nowhere"}}`,
		`{"target": {"connection": "renamed-` + victim + `-2", "connection_id": "99999999-2222-4333-8444-555555555555"}}renamed-AAAA`,
	} {
		if !strings.Contains(settled, line) {
			t.Errorf("%s\nis missing in\n%s", line, settled)
		}
	}
	exec(t, conn, sql.Print())
	exec(t, conn, "SELECT settle_names()")
	if again := one[string](t, conn, is); again != settled {
		t.Errorf("the second pass has made of it\n%s", again)
	}
	for _, refused := range []string{
		"INSERT INTO users (user_id, user_name, role) VALUES ('u3', '" + victim + "', 'viewer')",
		"UPDATE connections SET connection_name = upper('" + victim + "')  WHERE connection_name = 'shop'",
		"UPDATE test_templates SET template_name = repeat('0f', 32)",
		"INSERT INTO saved_queries (query_name, statement) VALUES ('urn:uuid:" + victim + "', 'SELECT 1')",
	} {
		if _, err := conn.Exec(t.Context(), refused); err == nil || !strings.Contains(err.Error(), "LS006") {
			t.Errorf("%s: %v", refused, err)
		}
	}
}
