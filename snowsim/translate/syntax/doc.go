// Package syntax splits Snowflake's SQL into tokens and reads them one by one.
//
// A Cursor stands at a token. What reads a statement asks it for the words, symbols
// and identifiers that may come next; where none of them does, the cursor fails with
// the line and position as Snowflake reports them. It fails by a panic that Failing
// turns into an error, so that a parser of many small functions need not hand errors up.
package syntax
