package version

import (
	"errors"
	"strings"
	"testing"
)

func TestOneMinorVersionApartWorksAndTwoDoNot(t *testing.T) {
	for _, tt := range []struct {
		server, node Build
		older        string // "" works
	}{
		{Build{"v1.4.0", 1}, Build{"v1.4.0", 1}, ""},
		{Build{"v1.4.0", 1}, Build{"1.4.9", 1}, ""},
		{Build{"v1.4.0", 1}, Build{"v1.3.2-17-gabcdef0-dirty", 1}, ""},
		{Build{"v1.4.0", 2}, Build{"v1.5.0-rc.1", 3}, ""}, // it gets keys from no server of before
		{Build{"v1.4.0", 1}, Build{"v1.2.9", 1}, "node"},
		{Build{"v1.2.9", 1}, Build{"v1.4.0", 1}, "server"},
		{Build{"v2.0.0", 1}, Build{"v1.9.0", 1}, "node"},
		{Build{"v1.9.0", 1}, Build{"v2.0.0", 1}, "server"},
		{Build{"0.1.0", 0}, Build{"0.2.0", 1}, ""},
		{Build{"0.3.0", 1}, Build{"0.1.0", 0}, "node"},
		{Build{"v1.10.0", 1}, Build{"v1.9.0", 1}, ""},
		{Build{"v1.4.0", 4}, Build{"v1.4.0", 2}, "node"},
		{Build{"v1.4.0", 2}, Build{"v1.5.0", 5}, "server"},
		// What is no version is told by its protocol: 0 is the first.
		{Build{"development", 1}, Build{"", 0}, ""},
		{Build{"unknown", 4}, Build{"8629e92", 3}, ""},
		// A node that does not know the servers' own databases gets no runs from a server that sends them. The other
		// way round works.
		{Build{"unknown", 2}, Build{"8629e92", 0}, "node"},
		{Build{"v1.4.0", 2}, Build{"v1.4.0", 1}, "node"},
		{Build{"v1.4.0", 2}, Build{"v1.3.0", 1}, "node"},
		{Build{"v1.3.0", 1}, Build{"v1.4.0", 2}, ""},
		// One of before sampled keys were told gets none of a server that tells them.
		{Build{"unknown", 3}, Build{"8629e92", 2}, "node"},
		{Build{"v1.4.0", 3}, Build{"v1.4.0", 2}, "node"},
		{Build{"v1.4.0", 3}, Build{"v1.3.0", 2}, "node"},
		{Build{"v1.3.0", 2}, Build{"v1.4.0", 3}, ""},
		{Build{"8629e92", 3}, Build{"v0.1.0", 0}, "node"},
		{Build{"8629e92-dirty", 1}, Build{"v9.9.9", 2}, ""},
		{Build{"", 0}, Build{"development", 3}, ""},
		{Build{"", 0}, Build{"development", 4}, "server"},
		{Build{"1", 1}, Build{"99999999999999999999.3.0", 1}, ""},
	} {
		err := Check(tt.server, tt.node)
		var skew *SkewError
		if tt.older == "" {
			if err != nil {
				t.Errorf("%v and %v: %v", tt.server, tt.node, err)
			}
			continue
		}
		if !errors.As(err, &skew) || skew.Older != tt.older {
			t.Errorf("%v and %v: %v", tt.server, tt.node, err)
			continue
		}
		for _, part := range []string{tt.server.Version, tt.node.Version, "upgrade the " + tt.older} {
			if !strings.Contains(skew.Error(), part) {
				t.Errorf("%q does not say %q", skew, part)
			}
		}
	}
}

func TestTheCureNamesTheVersion(t *testing.T) {
	const want = "the node is Loadstone v1.2.9 and the server v1.4.0, which are more than one minor version apart: " +
		"upgrade the node to 1.4"
	if got := Check(Build{"v1.4.0", Protocol}, Build{"v1.2.9", Protocol}).Error(); got != want {
		t.Errorf("%q", got)
	}
	const unguarded = "the node is Loadstone v1.3.0 (protocol 1) and the server v1.4.0, and the node " +
		"would not notice that " +
		"a run leads into the server's own databases: upgrade the node to 1.4"
	if got := Check(Build{"v1.4.0", Protocol}, Build{"v1.3.0", 1}).Error(); got != unguarded {
		t.Errorf("%q", got)
	}
	const unkeyed = "the node is Loadstone v1.3.0 (protocol 2) and the server v1.4.0, and the node " +
		"would look up other keys " +
		"of tables than those that the server has sampled: upgrade the node to 1.4"
	if got := Check(Build{"v1.4.0", Protocol}, Build{"v1.3.0", 2}).Error(); got != unkeyed {
		t.Errorf("%q", got)
	}
}
