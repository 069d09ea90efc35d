package wiring

import (
	"fmt"
	"net"
	"strconv"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// QueryFlags say whether logins that read results are let in over TCP.
type QueryFlags struct {
	QueryListen   string `name:"query-listen" placeholder:"HOST:PORT" env:"LOADSTONE_QUERY_LISTEN" help:"Address on which the embedded Postgres accepts logins of loadstone query-user (default: no TCP)."`
	QueryCert     string `name:"query-cert" placeholder:"FILE" env:"LOADSTONE_QUERY_CERT" help:"Certificate for --query-listen, PEM; connections without TLS are then refused."`
	QueryKey      string `name:"query-key" placeholder:"FILE" env:"LOADSTONE_QUERY_KEY" help:"The certificate's private key, PEM."`
	QueryInsecure bool   `name:"query-insecure" env:"LOADSTONE_QUERY_INSECURE" help:"Accept remote connections without TLS: anybody on the network can read the results."`
}

// listen is where the flags have Postgres listen, nil for nowhere.
func (f QueryFlags) listen(external bool) (*embedded.Listen, error) {
	if f.QueryListen == "" {
		if f.QueryCert != "" || f.QueryKey != "" {
			return nil, engine.InvalidField("--query-cert", "is of no use without --query-listen", "give both, or none")
		}
		return nil, nil
	}
	if external {
		return nil, engine.InvalidField("--query-listen", "is about the embedded Postgres, and --database-url names another",
			"have people connect to that one, as members of the role of --results-reader-url")
	}
	host, text, err := net.SplitHostPort(f.QueryListen)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || port == 0 {
		return nil, engine.InvalidField("--query-listen", fmt.Sprintf("%q is no address", f.QueryListen),
			"host and port, such as 127.0.0.1:5433")
	}
	if (f.QueryCert == "") != (f.QueryKey == "") {
		return nil, engine.InvalidField("--query-cert", "needs --query-key, and the other way round", "give both, or none")
	}
	if host == "" {
		host = "*"
	}
	ip := net.ParseIP(host)
	if f.QueryCert == "" && !f.QueryInsecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, engine.InvalidField("--query-listen", f.QueryListen+" can be reached from other machines, and what is "+
			"read there would travel without TLS", "give --query-cert and --query-key, or --query-insecure")
	}
	return &embedded.Listen{Host: host, Port: int(port), Cert: f.QueryCert, Key: f.QueryKey}, nil
}
