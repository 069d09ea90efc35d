// Package sql reads the statements of the catalog and of continuous queries: a lexer, a syntax tree and a
// recursive-descent parser. What it returns is syntax only; whether names exist and types fit is decided by those who
// bind it. Input is not trusted: depth, number of parts and length are bounded, and every refusal says where and what
// to do.
//
// Names keep their spelling and are compared without regard to case (Same). Keywords are not reserved where a name is
// expected, so that start, end, timestamp and type can be columns.
package sql
