"""Pages of a deployed collection: a survey for respondents, and a console for the operator."""
