"""Who may do what: API keys of machines, users of the pages, their sessions and roles."""
