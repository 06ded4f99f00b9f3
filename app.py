"""The entrance: `streamlit run app.py`."""

from ui import navigation, server

server.prepare()
page = navigation.build()
page.run()
server.keep(page.url_path)
