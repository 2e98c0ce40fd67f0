"""How SQLite executes the queries of a function."""


def explain(connection, query, *args):
    """Runs a query; returns each SELECT that it executes with the steps of its plan."""
    driver, statements = connection.connection.driver_connection, []
    driver.set_trace_callback(statements.append)
    query(connection, *args)
    driver.set_trace_callback(None)
    selects = [statement for statement in statements if statement.startswith(("SELECT", "WITH"))]
    return {one: [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {one}")] for one in selects}
