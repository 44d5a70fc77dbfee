"""What a result looks like: figures, theory overlays, tables and the HTML report."""
