package protocol

import "testing"

func TestZonedTimes(t *testing.T) {
	for in, want := range map[string]string{
		`("2026-02-03 01:35:06+00",150)`:        "1770082506.000000000 1590",
		`("2024-02-29 18:04:56.789+00",-330)`:   "1709229896.789000000 1110",
		`("1969-12-31 23:59:59.5+00",0)`:        "-1.500000000 1440",
		`("2026-02-03 01:35:06.000001+00",840)`: "1770082506.000001000 2280",
	} {
		got, err := zoned([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", in, got, err, want)
		}
	}
	if _, err := zoned([]byte("(x,y)")); err == nil {
		t.Error("nonsense was taken for a time")
	}
}
