package connector

import "testing"

// TestWhereNobodyIsSpokenWithIsRefusedWhereItIsWritten: sources and sinks name no address of the link and none where a
// cloud tells its keys, however it is spelled. A name is judged when it is dialled.
func TestWhereNobodyIsSpokenWithIsRefusedWhereItIsWritten(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"169.254.169.254": true, "[fe80::1%25eth0]": true, "[fd00:ec2::254]": true,
		"[::ffff:169.254.1.1]": true, "METADATA.google.internal.": true, "0.0.0.0": true, "127.0.0.1": false,
		"hooks.example": false} {
		if got := address("https://"+name+":8443/x") != ""; got != refused {
			t.Errorf("a sink that posts to %s: refused %v", name, got)
		}
	}
	for name, refused := range map[string]bool{"169.254.1.1": true, "fe80::1%eth0": true, "metadata": true, "": true,
		"10.0.0.7": false, "db.example": false} {
		if got := host(name) != ""; got != refused {
			t.Errorf("a source at %q: refused %v", name, got)
		}
	}
}
