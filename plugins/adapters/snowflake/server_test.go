package snowflake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

// said holds a conversation and writes it down: what is asked, and the answer or the error.
func said(of TableType, request object, results map[string]object) []string {
	var lines []string
	got := object{}
	for range 8 {
		request["results"] = got
		var raw json.RawMessage
		if err := sdktest.Adapter(New(of)).Call(request, &raw); err != nil {
			return append(lines, "error: "+err.Error())
		}
		var a struct {
			Queries []struct{ ID, SQL string }
			Checks  []struct{ Name, Outcome, Message, Fix, Field string }
			Resume  []string
			Restore []string
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			return append(lines, "not JSON: "+string(raw))
		}
		for _, q := range a.Queries {
			lines = append(lines, "asks: "+q.SQL)
			if got[q.ID] = results[q.ID]; results[q.ID] == nil {
				return append(lines, "nobody knows "+q.ID)
			}
		}
		if len(a.Queries) > 0 {
			continue
		}
		if request["op"] != "preflight" {
			return append(lines, strings.ReplaceAll(string(raw), `\n`, "\n"))
		}
		for _, c := range a.Checks {
			lines = append(lines, fmt.Sprintf("%s %s: %s", c.Outcome, c.Name, c.Message))
			if c.Fix != "" || c.Field != "" {
				lines = append(lines, "  "+c.Field+": "+c.Fix)
			}
		}
		return append(lines, fmt.Sprintf("resume %q, restore %q", a.Resume, a.Restore))
	}
	return append(lines, "the conversation does not end")
}

// oneWarehouse is a row of SHOW WAREHOUSES.
func oneWarehouse(state, kind string, autoResume any) object {
	return shown([]string{"name", "state", "type", "size", "min_cluster_count", "max_cluster_count", "started_clusters", "running", "queued", "scaling_policy", "auto_resume"},
		[]any{"WH", state, kind, "Medium", 1, 2, 1, 3, 4, "STANDARD", autoResume})
}

// granted is SHOW GRANTS with privileges of the role BENCH, and of another one.
func granted(privileges ...string) object {
	list := [][]any{{"OWNERSHIP", "ROLE", "SYSADMIN"}}
	for _, p := range privileges {
		list = append(list, []any{p, "ROLE", "BENCH"})
	}
	return shown([]string{"privilege", "granted_to", "grantee_name"}, list...)
}

func TestPreflight(t *testing.T) {
	session := rows([]any{"BENCH", "DB", "PUBLIC"})
	refused := object{"error": "Insufficient privileges", "code": "003001"}
	all := granted("USAGE", "OPERATE", "MONITOR")
	var lines []string
	for _, c := range []struct {
		name    string
		of      TableType
		more    object
		results map[string]object
	}{
		{"running", Standard, object{"warehouse": "WH", "connections": 16}, map[string]object{"session": session, "warehouses": oneWarehouse("STARTED", "STANDARD", "true"), "warehouse_grants": all}},
		{"the session's own, suspended, more connections than slots", Standard, object{"connections": 17},
			map[string]object{"session": session, "current_warehouse": rows([]any{"WH"}), "warehouses": oneWarehouse("SUSPENDED", "STANDARD", "true"), "warehouse_grants": all}},
		{"nothing is granted but USAGE, and it resumes by itself", Standard, object{"warehouse": "WH"},
			map[string]object{"session": session, "warehouses": oneWarehouse("SUSPENDED", "STANDARD", true), "warehouse_grants": granted("USAGE")}},
		{"nothing is granted but MONITOR, and it does not resume by itself", Standard, object{"warehouse": "WH"},
			map[string]object{"session": session, "warehouses": oneWarehouse("SUSPENDED", "STANDARD", "false"), "warehouse_grants": granted("MONITOR")}},
		{"the role's rights come from another role", Standard, object{"warehouse": "WH", "prepare": true},
			map[string]object{"session": session, "warehouses": oneWarehouse("SUSPENDED", "STANDARD", "true"), "warehouse_grants": granted(), "schema_grants": granted()}},
		{"the grants cannot be read", Standard, object{"warehouse": "WH", "prepare": true},
			map[string]object{"session": session, "warehouses": oneWarehouse("SUSPENDED", "STANDARD", "true"), "warehouse_grants": refused, "schema_grants": refused}},
		{"no table can be made", Hybrid, object{"warehouse": "WH", "prepare": true},
			map[string]object{"session": session, "warehouses": oneWarehouse("STARTED", "STANDARD", "true"), "warehouse_grants": all, "schema_grants": granted("USAGE")}},
		{"tables can be made", Hybrid, object{"warehouse": "WH", "prepare": true},
			map[string]object{"session": session, "warehouses": oneWarehouse("STARTED", "STANDARD", "true"), "warehouse_grants": all, "schema_grants": granted("USAGE", "CREATE HYBRID TABLE")}},
		{"an interactive warehouse", Hybrid, object{"warehouse": "WH"}, map[string]object{"session": session, "warehouses": oneWarehouse("STARTED", "INTERACTIVE", "true"), "warehouse_grants": all}},
		{"a standard warehouse", Interactive, object{"warehouse": "WH"}, map[string]object{"session": session, "warehouses": oneWarehouse("STARTED", "STANDARD", "true"), "warehouse_grants": all}},
		{"no warehouse", Standard, nil, map[string]object{"session": session, "current_warehouse": rows([]any{nil})}},
		{"a warehouse that is not there", Standard, object{"warehouse": `O'"H`}, map[string]object{"session": session, "warehouses": rows()}},
		{"no role, no schema", Standard, object{"warehouse": "WH"}, map[string]object{"session": rows([]any{nil, "DB", nil}), "warehouses": oneWarehouse("STARTED", "STANDARD", "true"), "warehouse_grants": all}},
		{"warehouses cannot be shown", Standard, object{"warehouse": "WH"}, map[string]object{"session": session, "warehouses": refused}},
	} {
		request := object{"op": "preflight"}
		for k, v := range c.more {
			request[k] = v
		}
		lines = append(append(lines, "-- "+c.name), said(c.of, request, c.results)...)
	}
	golden(t, "preflight.txt", lines)
}

func TestPoll(t *testing.T) {
	var lines []string
	for _, c := range []struct {
		name    string
		more    string
		results map[string]object
	}{
		{"of the run", "WH", map[string]object{"warehouses": oneWarehouse("STARTED", "STANDARD", "true")}},
		{"of the session", "", map[string]object{"current_warehouse": rows([]any{"wh"}), "warehouses": oneWarehouse("RESUMING", "INTERACTIVE", "true")}},
		{"counts as text", "WH", map[string]object{"warehouses": shown([]string{"name", "running", "queued", "max_cluster_count"}, []any{"WH", "12", "0", nil})}},
		{"none", "", map[string]object{"current_warehouse": rows([]any{nil})}},
		{"not there", "100%_\\", map[string]object{"warehouses": rows()}},
		{"refused", "WH", map[string]object{"warehouses": {"error": "no"}}},
	} {
		lines = append(append(lines, "-- "+c.name), said(Standard, object{"op": "poll", "warehouse": c.more}, c.results)...)
	}
	golden(t, "poll.txt", lines)
}

func TestEnrich(t *testing.T) {
	var lines []string
	for _, of := range []TableType{Standard, Hybrid, Interactive} {
		lines = append(append(lines, "-- "+of.String()), said(of, object{"op": "enrich", "now_ms": 1_000_000}, map[string]object{"clock": rows([]any{"1004999"})})...)
	}
	for _, c := range []struct {
		name  string
		clock object
	}{{"a clock that is ahead", rows([]any{1_005_000})}, {"a clock that cannot be read", object{"error": "no"}}} {
		lines = append(append(lines, "-- "+c.name), said(Standard, object{"op": "enrich", "now_ms": 1_000_000}, map[string]object{"clock": c.clock})...)
	}
	golden(t, "enrich.txt", lines)
}
