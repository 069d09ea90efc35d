package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

// documented are the operations of docs/openapi.json, "GET /api/runs/{id}", with the properties of their bodies.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for path, methods := range doc["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			schema, _ := at(operation, "requestBody", "content", "application/json", "schema").(map[string]any)
			if ref, is := schema["$ref"].(string); is {
				schema, _ = at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
			}
			properties, _ := schema["properties"].(map[string]any)
			all[strings.ToUpper(method)+" "+path] = slices.Sorted(maps.Keys(properties))
		}
	}
	if len(all) < 100 {
		t.Fatalf("the document has %d operations", len(all))
	}
	return all
}

// victims are things of ada's, by kind.
type victims struct {
	owned
	conn *pgx.Conn
	ids  map[string]string
}

// plant makes one thing of each kind, and for each of their ids a connection, a template, a user and a view that have
// it as their name: earlier versions let that be.
func plant(t *testing.T, o owned) victims {
	t.Helper()
	v := victims{owned: o, ids: map[string]string{}}
	c, tpl := o.fresh(1)
	several := scenario("several")
	several["matrix"] = map[string]any{"targets": []any{
		map[string]any{"label": "a", "connection": c.Name, "adapter": "postgres", "table_name": "orders"},
		map[string]any{"label": "b", "connection": c.Name, "adapter": "postgres", "table_name": "orders"}}}
	delete(several, "target")
	v.ids["connection"], v.ids["template"], v.ids["user"] = c.ConnectionID, tpl.TemplateID, o.people["vic"].UserID
	v.ids["run"] = decode[engine.Run](t, o.as("ada", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID}).
		want(t, 201)).RunID
	v.ids["matrix"] = decode[matrix.State](t, o.as("ada", "POST", "/api/matrices", map[string]any{"scenario": several}).
		want(t, 201)).MatrixID
	v.ids["view"] = decode[store.RunView](t, o.as("ada", "POST", "/api/v1/run-views", map[string]any{"name": "mine"}).
		want(t, 201)).ViewID
	v.ids["plugin"] = strings.Repeat("0f", 32)
	conn, err := pgx.Connect(t.Context(), o.store.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	v.conn = conn
	for _, id := range v.ids {
		for _, insert := range []string{
			`INSERT INTO connections (connection_id, connection_name, driver, dsn_redacted, dsn_sealed, description)
				SELECT gen_random_uuid(), $1, 'postgres', 'postgres://decoy/d', dsn_sealed, 'decoy' FROM connections
				WHERE description <> 'decoy' LIMIT 1`,
			`INSERT INTO test_templates (template_id, template_name, config, description)
				SELECT gen_random_uuid(), $1, config, 'decoy' FROM test_templates WHERE description <> 'decoy' LIMIT 1`,
			`INSERT INTO users (user_id, user_name, role) VALUES ('decoy-' || $1::text, $1, 'operator')`,
			`INSERT INTO run_views (view_id, user_id, view_name, query, updated_by)
				SELECT gen_random_uuid(), user_id, $1, 'search=decoy', 'decoy' FROM users WHERE user_name = 'root'`,
		} {
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "SET LOCAL session_replication_role = replica"); err != nil { // no trigger
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), insert, id); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return v
}

// decoys is all that is named as something else's id.
func (v victims) decoys() (all string) {
	v.t.Helper()
	err := v.conn.QueryRow(v.t.Context(), `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
		SELECT to_jsonb(c)::text FROM connections c WHERE description = 'decoy'
		UNION ALL SELECT to_jsonb(t)::text FROM test_templates t WHERE description = 'decoy'
		UNION ALL SELECT to_jsonb(u)::text FROM users u WHERE user_id LIKE 'decoy-%'
		UNION ALL SELECT to_jsonb(r)::text FROM run_views r WHERE updated_by = 'decoy') AS lines (line)`).Scan(&all)
	if err != nil {
		v.t.Fatal(err)
	}
	return all
}

// namesNothing are the operations whose body has a name that is a label, or not a name of ours: nothing is found by it.
var namesNothing = []string{
	"POST /api/auth/signin", "POST /api/auth/tokens", "POST /api/v1/node-tokens",
	"POST /api/v1/table-preview", // it keeps nothing
}

// TestNamesAgainstIDs goes through every operation of the document. What takes a name refuses one that looks like the
// id of something; what has an id in its address finds what has that id, and leaves alone what has it as its name.
func TestNamesAgainstIDs(t *testing.T) {
	t.Parallel()
	v := plant(t, ownBy(t, func(o *server.Options) { o.Tables = noTables{} }))
	operations := documented(t)
	made := 0
	for _, route := range slices.Sorted(maps.Keys(operations)) {
		method, path, _ := strings.Cut(route, " ")
		if !slices.Contains(operations[route], "name") || slices.Contains(namesNothing, route) ||
			strings.HasPrefix(path, "/api/v1/query-users") {
			continue
		}
		for kind, id := range v.ids {
			if !engine.LooksLikeID(id) || len(id) > 63 && strings.HasPrefix(path, "/api/v1/tables") {
				continue // those of the fakes are words
			}
			body := v.named(id, operations[route])
			at := strings.NewReplacer("{id}", v.ids[ofPath(path)], "{name}", "a-name").Replace(path)
			got := v.as("ada", method, at, body)
			if strings.HasPrefix(path, "/api/users") {
				got = v.as("root", method, at, body)
			}
			made++
			if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "looks like an id") {
				t.Errorf("%s with the id of a %s as the name: %d %s", route, kind, got.StatusCode, got.body)
			}
		}
	}
	if made < 20 {
		t.Errorf("only %d names were tried", made)
	}
	v.templatesByName()
	v.byID(operations)
	v.inBodies()
}

// ofPath is the kind of thing that the id in an address is of.
func ofPath(path string) string {
	for part, kind := range map[string]string{"/connections/": "connection", "/templates/": "template",
		"/from-template/": "template", "/users/": "user", "/matrices/": "matrix", "/run-views/": "view",
		"/plugins/": "plugin"} {
		if strings.Contains(path, part) {
			return kind
		}
	}
	return "run"
}

// named is a body that any operation with a name takes.
func (v victims) named(name string, has []string) map[string]any {
	body := map[string]any{"name": name, "driver": "postgres", "dsn": restrictedDSN, "role": "viewer", "sql": "SELECT 1",
		"definition": "SELECT 1", "target_lag_seconds": 60, "version": 1, "cron": "@daily"}
	maps.DeleteFunc(body, func(property string, _ any) bool { return !slices.Contains(has, property) })
	return body
}

// templatesByName: the name of a template stands in its document.
func (v victims) templatesByName() {
	v.t.Helper()
	for kind, id := range v.ids {
		if !engine.LooksLikeID(id) {
			continue
		}
		for _, route := range [][2]string{{"POST", "/api/templates"}, {"PUT", "/api/templates/" + v.ids["template"]}} {
			body := map[string]any{"config": scenario(id)}
			if route[0] == "PUT" {
				body["version"] = 1
			}
			got := v.as("ada", route[0], route[1], body)
			if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "looks like an id") {
				v.t.Errorf("%s %s named as the id of a %s: %d %s", route[0], route[1], kind, got.StatusCode, got.body)
			}
		}
	}
}

// byID asks each operation whose address has an id or a name about each victim, reading first, removing last.
func (v victims) byID(operations map[string][]string) {
	v.t.Helper()
	before, asked := v.decoys(), 0
	for _, turn := range [][]string{{"GET"}, {"PUT", "PATCH", "POST"}, {"DELETE"}} {
		for _, route := range slices.Sorted(maps.Keys(operations)) {
			method, path, _ := strings.Cut(route, " ")
			if !slices.Contains(turn, method) || !strings.Contains(path, "{id}") && !strings.Contains(path, "{name}") ||
				strings.HasPrefix(path, "/ws/") || strings.HasPrefix(path, "/api/v1/queries/") ||
				strings.HasPrefix(path, "/api/v1/tables/") {
				continue // where a name is all that there is, it is nothing else's id
			}
			for kind, id := range v.ids {
				got := v.as("root", method, strings.NewReplacer("{id}", id, "{name}", id, "{mark}", id, "{address}", id).
					Replace(path), bodies(strings.NewReplacer("{id}", ":id", "{name}", ":name").Replace(route)))
				asked++
				if strings.Contains(string(got.body), "decoy") {
					v.t.Errorf("%s of the id of a %s has found what is named so: %d %s", route, kind, got.StatusCode, got.body)
				}
				if now := v.decoys(); now != before {
					v.t.Fatalf("%s of the id of a %s has changed what is named so:\n%s\n%s", route, kind, before, now)
				}
				if kind == ofPath(path) && method == "GET" && got.StatusCode == http.StatusNotFound &&
					kind != "plugin" && strings.Count(path, "/") == 3 && strings.HasPrefix(path, "/api/") {
					v.t.Errorf("%s has not found the %s: %s", route, kind, got.body)
				}
			}
		}
	}
	if asked < 300 {
		v.t.Errorf("%d requests were made", asked)
	}
}

// inBodies: where a user types a connection or a template, its id wins over a name.
func (v victims) inBodies() {
	v.t.Helper()
	c, tpl := v.fresh(2)
	decoy := func(id string) {
		_, err := v.conn.Exec(v.t.Context(), `UPDATE connections SET connection_name = $1 WHERE connection_id =
			(SELECT connection_id FROM connections WHERE description = 'decoy' ORDER BY 1 LIMIT 1)`, id)
		if err == nil || !strings.Contains(err.Error(), "LS006") {
			v.t.Errorf("the store took the name %s: %v", id, err)
		}
		if _, err := v.conn.Exec(v.t.Context(), "SET session_replication_role = replica"); err != nil {
			v.t.Fatal(err)
		}
		if _, err := v.conn.Exec(v.t.Context(), `UPDATE connections SET connection_name = $1 WHERE connection_id =
			(SELECT connection_id FROM connections WHERE description = 'decoy' ORDER BY 1 LIMIT 1)`, id); err != nil {
			v.t.Fatal(err)
		}
		if _, err := v.conn.Exec(v.t.Context(), "SET session_replication_role = origin"); err != nil {
			v.t.Fatal(err)
		}
	}
	decoy(c.ConnectionID)
	config := scenario("typed")
	config["target"].(map[string]any)["connection"] = c.ConnectionID
	for who, status := range map[string]int{"ada": http.StatusCreated, "bob": http.StatusCreated,
		"eve": http.StatusForbidden} {
		v.as(who, "POST", "/api/runs", map[string]any{"scenario": config}).want(v.t, status)
	}
	run := decode[engine.Run](v.t, v.as("ada", "POST", "/api/runs", map[string]any{"scenario": config}).want(v.t, 201))
	kept, err := v.store.Run(v.t.Context(), run.RunID)
	if err != nil || kept.Scenario.Target.ConnectionID != c.ConnectionID ||
		kept.Scenario.Target.Connection.Name != c.Name {
		v.t.Errorf("the run keeps %+v, %v", kept.Scenario.Target, err)
	}
	saved, err := v.store.Template(v.t.Context(), tpl.TemplateID)
	if err != nil || saved.Config.Target.ConnectionID != c.ConnectionID {
		v.t.Errorf("the template keeps %+v, %v", saved.Config.Target, err)
	}
	v.as(
		"eve",
		"POST",
		"/api/connections/test",
		map[string]any{"driver": "postgres", "dsn": "postgres://u:***@db.example/d",
			"connection_id": c.ConnectionID},
	).want(
		v.t,
		http.StatusForbidden,
	)
	v.as("eve", "POST", "/api/statements/catalog", map[string]any{"connection": c.ConnectionID}).
		want(v.t, http.StatusForbidden)
	v.as("eve", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID}).want(v.t, http.StatusForbidden)
	// A document does not say an id beside a name that another connection has.
	config["target"].(map[string]any)["connection_id"] = c.ConnectionID
	config["target"].(map[string]any)["connection"] = fmt.Sprint("renamed ", c.Name)
	v.as("ada", "POST", "/api/runs", map[string]any{"scenario": config}).want(v.t, http.StatusUnprocessableEntity)
}
