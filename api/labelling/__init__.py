"""Tools that help people to label photographs."""
