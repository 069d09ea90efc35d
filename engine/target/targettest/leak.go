package targettest

import "go.uber.org/goleak"

// SnowflakeDriverLeak excuses the one goroutine that gosnowflake (2.1) leaves behind now and then:
// a request whose context ends between the arrival of the answer and the driver's look at it
// (retryHTTP.execute) returns without closing the answer's body, and net/http's timer of that
// request waits until the client's timeout.
func SnowflakeDriverLeak() goleak.Option {
	return goleak.IgnoreAnyFunction("net/http.setRequestCancel.func4")
}
