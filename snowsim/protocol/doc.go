// Package protocol is the form in which requests and answers of Snowflake's HTTP protocol
// travel: the envelope of every answer with its codes, bound values, and rows in
// Snowflake's JSON, the first of them in the answer and further ones in chunks.
//
// What a request means, and which session it belongs to, is the server's.
package protocol
