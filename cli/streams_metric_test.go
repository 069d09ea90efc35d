package cli

import (
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
)

// TestAMetricOfAQueryIsScraped: the newest row of each set of labels is a gauge of the server, whose number moves
// with the next row, and which is gone with its query. Labels are what a source sends: hostile ones are escaped.
func TestAMetricOfAQueryIsScraped(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	source, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	rows := make(chan string, 8)
	go func() {
		c, err := source.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for row := range rows {
			_, _ = c.Write([]byte(row))
		}
	}()
	defer close(rows)
	s := streamsServer{p.Serve("--allow-targets", "127.0.0.1/32")}
	_, port, _ := net.SplitHostPort(source.Addr().String())
	s.done(`CREATE LOGICAL SOURCE room(name TEXT, degrees FLOAT64, humid INT64);
		CREATE PHYSICAL SOURCE FOR room TYPE TCP SET('127.0.0.1' AS SOURCE.SOCKET_HOST, ` + port + ` AS SOURCE.SOCKET_PORT,
			'CSV' AS PARSER.TYPE, 1 AS SOURCE.BATCH_ROWS);
		CREATE SINK gauge TYPE METRIC SET('room' AS SINK.METRIC);
		CREATE QUERY rooms AS SELECT name, degrees, humid FROM room INTO gauge`)
	s.until("rooms", "RUNNING")
	message := regexp.MustCompile(`(?m)^loadstone_stream_room.*$`)
	scraped := func(want ...string) {
		t.Helper()
		var got []string
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			got = message.FindAllString(s.MustGet("/metrics"), -1)
			if slices.Sort(got); slices.Equal(got, want) {
				return
			}
		}
		t.Fatalf("scraped\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	rows <- "hall,20.5,40\nattic\"{x},31,\n"
	scraped(`loadstone_stream_room_degrees{name="attic\"{x}",query="rooms"} 31`,
		`loadstone_stream_room_degrees{name="hall",query="rooms"} 20.5`,
		`loadstone_stream_room_humid{name="hall",query="rooms"} 40`)
	rows <- "hall,19,41\n"
	scraped(`loadstone_stream_room_degrees{name="attic\"{x}",query="rooms"} 31`,
		`loadstone_stream_room_degrees{name="hall",query="rooms"} 19`,
		`loadstone_stream_room_humid{name="hall",query="rooms"} 41`)
	s.done("DROP QUERY rooms MODE FORCEFUL")
	s.until("rooms", "")
	scraped()
	if status, _, refusal := s.statements("CREATE SINK bad TYPE METRIC SET('9 lives' AS SINK.METRIC)"); status != 422 ||
		!strings.HasPrefix(refusal.Detail, "InvalidConfig: SINK.METRIC begins") {
		t.Errorf("a name that no metric can have: %d %+v", status, refusal)
	}
	s.Stop()
}
