package template

import (
	"reflect"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func TestRetry(t *testing.T) {
	for _, c := range []struct {
		retry string
		want  *engine.Retry
		says  string // what is wrong with it
	}{
		{"", nil, ""},
		{"retry: null", nil, ""},
		{"retry: {}", &engine.Retry{Max: 3, Classes: []engine.ErrorClass{"serialization", "deadlock"}, BackoffMs: 10}, ""},
		{"retry: {max: 100, classes: [lock], backoff_ms: 0.5}",
			&engine.Retry{Max: 100, Classes: []engine.ErrorClass{"lock"}, BackoffMs: 0.5}, ""},
		{"retry: {max: 101}", nil, "workload.retry.max"},
		{"retry: {max: -1}", nil, "workload.retry.max"},
		{"retry: {classes: [deadlok]}", nil, "deadlock"},
		{"retry: {classes: [connection]}", nil, "workload.retry.classes"},
		{"retry: {backoff: 1}", nil, "backoff_ms"},
	} {
		s, err := Parse([]byte("name: x\ntarget: {connection: playground, table_name: orders}\nworkload:\n  plugin: mix\n  " +
			c.retry + "\n"))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.retry, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(s.Workload.Retry, c.want) {
			t.Errorf("%s: %+v, %v", c.retry, s.Workload.Retry, err)
		}
	}
}
