// Package examples holds small programs of the kind this library is for, whole
// enough to be tested with processes that are stopped and killed:
//
//   - [Shop] sells what is in a SQL database, one order at a time for each article,
//     on any number of servers behind a router; a server that lost its lock while
//     it stood still cannot sell what is gone.
//   - [MonthlyReport] runs once a month, on one of several nodes.
//
// It is a module of its own: the library needs neither the database nor the router.
package examples
