package template

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

const twoTables = `
name: tables
matrix:
  targets:
    - {connection: playground, table_name: a, prepare: {rows: 10}}
    - {connection: {driver: postgres, dsn: "postgres://u@h/d"}, table_type: HYBRID, table_name: b}
    - {label: mine, connection: playground, table_name: c}
    - {connection: playground, table_name: d}
workload: {plugin: mix}
`

func TestMatrix(t *testing.T) {
	s, err := Parse([]byte(twoTables))
	if err != nil {
		t.Fatal(err)
	}
	m := s.Matrix
	if m == nil || len(m.Targets) != 4 || m.StopOnFailure {
		t.Fatalf("%+v", m)
	}
	var labels []string
	for _, x := range m.Targets {
		labels = append(labels, x.Label)
	}
	if strings.Join(labels, ",") != "postgres,snowflake_hybrid,mine,postgres 4" {
		t.Errorf("labels %q", labels)
	}
	if m.Targets[0].Prepare.IfExists != engine.IfExistsUse || m.Targets[1].Adapter != "snowflake_hybrid" ||
		m.Targets[1].Connection.DSN != "postgres://u@h/d" {
		t.Errorf("targets %+v", m.Targets)
	}
	// What it becomes can be read again, as JSON and as YAML, and so can each of its runs.
	text, err := YAML(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	a, _ := json.Marshal(s)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Errorf("read again\n%s\n%s", a, b)
	}
	for _, one := range s.Expand() {
		if _, err := Complete(one); err != nil || one.Matrix != nil {
			t.Errorf("%+v: %v", one, err)
		}
	}
	if one := s.Expand()[2]; one.Name != "tables · mine" || one.Target.TableName != "c" {
		t.Errorf("%+v", one)
	}
}

func TestMatrixRefusals(t *testing.T) {
	for field, text := range map[string]string{
		"target": "name: x\nworkload: {plugin: mix}",
		"matrix": "name: x\ntarget: {connection: p}\nmatrix: {targets: [{connection: " +
			"p}]}\nworkload: {plugin: mix}",
		"matrix.targets": "name: x\nmatrix: {targets: []}\nworkload: {plugin: mix}",
		"matrix.targets[0].tabel_name": "name: x\nmatrix: {targets: [{connection: p, tabel_name: p}]}\nworkload: " +
			"{plugin: mix}",
		"matrix.targets[1].label": "name: x\nmatrix: {targets: [{label: a, connection: p}, {label: a, " +
			"connection: q}]}\nworkload: {plugin: mix}",
		"matrix.targets[0].connection.dsn": "name: x\nmatrix: {targets: [{connection: {driver: postgres}}]}\nworkload: " +
			"{plugin: mix}",
		"matrix.targets[0].prepare.if_exists": "name: x\nmatrix: {targets: [{connection: p, prepare: {if_exists: " +
			"maybe}}]}\nworkload: {plugin: mix}",
	} {
		_, err := Parse([]byte(text))
		var e *engine.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", field, err)
			continue
		}
		found := false
		for _, f := range e.Fields {
			found = found || f.Field == field
		}
		if !found {
			t.Errorf("%s is not among %+v", field, e.Fields)
		}
	}
}
