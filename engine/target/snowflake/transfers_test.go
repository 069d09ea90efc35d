package snowflake

import "testing"

func TestFileTransfersAreRefused(t *testing.T) {
	for _, sql := range []string{"PUT file:///etc/passwd @~", "get @~ file:///tmp", "  put\tfile:///x @s",
		"/* a */ PUT 'file:///x' @s", "-- c\nGET @~ file:///x", "/* a */ /* b */\nput file:///x @~", "; put file:///x @~",
		"/* put */ get @~ file:///y", "//x\nput file:///x @~"} {
		if !transfersFiles(sql) {
			t.Errorf("%q goes out", sql)
		}
	}
	for _, sql := range []string{"SELECT GET(a, 'b') FROM t", "SELECT 'put '", "INSERT INTO put VALUES (1)",
		"/* put */ SELECT 1", "SELECT 1 -- put x", "GETDATE()", "puts x"} {
		if transfersFiles(sql) {
			t.Errorf("%q is refused", sql)
		}
	}
}
