// Package snowsim is a stand-in for a Snowflake account. It speaks Snowflake's
// HTTP protocol to the unmodified driver, executes statements on Postgres through
// a translator, and lets a model of warehouses decide how long they take, when
// they queue and what of them the query history shows.
//
// It is a test tool and a demo. Its figures are those of a model: they say
// nothing about Snowflake, and are labelled "simulated" wherever they are shown.
//
// # Life of a statement
//
// A client logs in (login.go) and gets a session with two tokens: the session
// token, which expires and is renewed with the master token. POST
// /queries/v1/query-request (query.go) makes a job. A job is known by its request
// id, so that a request that is sent again after a broken connection finds its
// job instead of executing twice. The translator makes a plan (package translate); the
// account (account.go) admits the job to a warehouse; the job runs on the session's
// Postgres connection (execute.go, postgres.go); rows are encoded in Snowflake's formats
// (package protocol), the first of them into the answer and the rest into chunks that the
// client fetches; the execution is recorded (package history).
//
// A job that is not done after a while is answered with "in progress" and a
// URL for the result. A job outlives the request that started it and ends
// with an abort request, with its session, or with the server.
//
// # Trust
//
// It listens on a loopback address by default, has passwords of its
// own, and must not be given a database that holds anything of value: clients run SQL in it.
package snowsim
